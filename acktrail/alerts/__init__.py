"""What a page is: its identity, its text and its life. Receivers are in `expectations/notify`."""
