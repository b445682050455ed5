"""The subcommands, one module each; each exports `command`."""
