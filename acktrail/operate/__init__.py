"""What starts the engines: watch, housekeeping, the doctor's probes, the lab's score."""
