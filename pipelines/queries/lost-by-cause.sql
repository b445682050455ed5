-- What was lost, by topic and cause?
-- :topic  only topics like this one = %
SELECT topic, cause, state, `group`, sum(ids) AS messages, count(*) AS incidents,
       min(started_at) AS first_at, max(ended_at) AS last_at
FROM loss_incidents
WHERE topic LIKE :topic
GROUP BY topic, cause, state, `group`
ORDER BY messages DESC
