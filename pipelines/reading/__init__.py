"""Reading log texts and metric names: pure Python, no Spark."""
