-- When did partitions change their leader, and what did producers meet meanwhile?
-- :topic  only topics like this one = %
WITH changes AS (
  SELECT at, topic, partition, leader, leader_epoch, isr,
         lag(leader) OVER w AS before, lag(at) OVER w AS looked_before
  FROM cluster_states
  WHERE topic LIKE :topic
  WINDOW w AS (PARTITION BY cluster, topic_id, topic, partition ORDER BY at)
)
SELECT c.at, c.topic, c.partition, c.before, c.leader, c.leader_epoch, c.isr,
       count(e.event_key) AS producer_events, array_sort(collect_set(e.error)) AS errors
FROM changes c
LEFT JOIN producer_events e
  ON e.topic = c.topic AND e.at BETWEEN c.looked_before - interval 30 seconds AND c.at
WHERE c.before <> c.leader
GROUP BY ALL
ORDER BY c.at, c.topic, c.partition
