"""What a page is: its identity, its text and its life. Pure Python; receivers are in `expectations/notify`."""
