"""Ad hoc questions in Spark SQL: they can read the lake's tables and do nothing else.

* `tokens`         the words of a text, by Spark's own lexer
* `allowed`        the plan nodes, expressions and functions that a question may use
* `fence`          refuses a parsed or analyzed plan with anything else in it
* `statements`     what a text is: a query, or one of the few other statements that are answered
* `table_catalog`  the lake's tables in the session's catalog
* `ask`            the answer, within a time and a number of rows
* `saved`          questions kept in files, with parameters
* `remote`         a question to `acktrail serve`, through Spark Connect
* `places`         the place of an error, with a caret under it
"""
