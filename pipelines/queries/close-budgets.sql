-- Which retry budgets came close to their end, or reached it?
-- :attempts  attempts left, at most = 10
-- :seconds  or seconds left before the time-out when it ended, at most = 10
SELECT client_id, host, topic, partition, error, opened_at, ended_at, ended_by, attempts_left,
       timestampdiff(SECOND, ended_at, exhausts_at_earliest) AS seconds_left, because
FROM retry_budgets
WHERE ended_by = 'exhausted'
   OR attempts_left <= :attempts::int
   OR timestampdiff(SECOND, ended_at, exhausts_at_earliest) <= :seconds::int
ORDER BY attempts_left NULLS LAST, seconds_left
