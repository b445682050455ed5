-- Which verdicts were corrected, and on what evidence?
SELECT changed_at, topic, `group`, first_seq, last_seq, last_seq - first_seq + 1 AS messages,
       before_state, before_cause, after_state, after_cause, because
FROM verdict_changes
WHERE before_state IS NOT NULL
ORDER BY changed_at DESC
