-- How unevenly do messages spread over the partitions of a topic?
-- :topic  only topics like this one = %
WITH growth AS (
  SELECT topic, partition, sum(moved) AS messages
  FROM offset_accounts
  WHERE `group` = '' AND topic LIKE :topic
  GROUP BY topic, partition
)
SELECT topic, count(*) AS partitions, sum(messages) AS messages,
       max_by(partition, messages) AS fullest, max(messages) AS in_fullest,
       round(try_divide(max(messages) * count(*), sum(messages)), 2) AS times_the_average
FROM growth
GROUP BY topic
HAVING count(*) > 1
ORDER BY times_the_average DESC NULLS LAST
