"""What people see on a terminal: tables, progress, the log, options that commands share."""
