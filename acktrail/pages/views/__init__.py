"""One view per question: each turns an answer into markup."""
