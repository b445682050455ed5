-- What was lost yesterday, or on another day?
-- :topic  only topics like this one = %
-- :day  a day in UTC, for example 2026-01-31 = yesterday
SELECT started_at, topic, `group`, state, cause, ids AS messages, client_ids, because
FROM loss_incidents
WHERE topic LIKE :topic
  AND to_date(started_at) = coalesce(try_to_date(:day), date_sub(current_date(), 1))
ORDER BY started_at
