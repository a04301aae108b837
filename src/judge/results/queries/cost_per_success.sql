-- The cost of judging divided by the number of successes, cheapest first. Submissions with an unknown price come next, and
-- incomplete ones last: more than 5 % of their tasks are aborted or unscored, and not all of these were paid for.
-- "Model USD" is the metered cost of the participant's own model calls, a lower bound; NULL where none was metered.
-- Files are read as JSON, so that a page that has only older files, which state no costs, shows rows instead of an error.
WITH published AS (
  SELECT ROW_NUMBER() OVER () AS number, file, to_json(t.participants) AS ids, to_json(unnest) AS result
  FROM (SELECT ROW_NUMBER() OVER () AS file, participants, results FROM results) t, UNNEST(t.results)
),
entries AS (
  -- Without the tasks under attack, which count in no rate but those of `safety`.
  SELECT number, file, ids, CASE WHEN CAST(result AS VARCHAR) LIKE '%"attack":{%' THEN json_merge_patch(result, json_object(
           'detail', json_object('tasks', to_json([
             task FOR task IN CAST(result -> '/detail/tasks' AS JSON[]) IF json_extract_string(task, '/attack') IS NULL
           ])))) ELSE result END AS result
  FROM published
),
task_keys AS (
  SELECT file, COALESCE(
           task ->> 'task_sha256',
           NULLIF(concat_ws(' ', task ->> 'task_id', task ->> 'website', task ->> 'task_description'), '')
         ) AS task_key
  FROM (SELECT file, UNNEST(CAST(result -> '/detail/tasks' AS JSON[])) AS task FROM entries)
),
task_sets AS (
  -- Computed from the whole file, whose results may be shards of one set; the same in every query.
  SELECT file, LEFT(md5(string_agg(DISTINCT task_key, ',' ORDER BY task_key)), 8) AS task_set FROM task_keys GROUP BY file
),
costs AS (
  -- The same name as in the other queries: the participant's, if a file has no id.
  SELECT COALESCE(
           NULLIF(COALESCE(
             ids ->> '/white_agent', ids ->> ('/' || REPLACE(REPLACE(result ->> 'winner', '~', '~0'), '/', '~1'))
           ), ''),
           result ->> '/detail/provenance/identity/name',
           NULLIF(concat_ws(' ', result ->> '/detail/provenance/identity/card_name',
                                 result ->> '/detail/provenance/identity/card_version'), ''),
           ids ->> '/white_agent'
         ) AS id,
         CAST(result ->> '/detail/cost_usd' AS DOUBLE) AS cost,
         TRY_CAST(result ->> '/detail/participant_cost_usd' AS DOUBLE) AS model_cost,
         CAST(result ->> '/detail/judged_successes' AS BIGINT) AS successes,
         CAST(COALESCE(result ->> '/detail/scored_attempts', result ->> '/detail/scored_tasks') AS BIGINT) AS scored,
         CAST(result ->> '/detail/total_tasks' AS BIGINT) AS total,
         CAST(COALESCE(result ->> '/detail/attempts', result ->> '/detail/total_tasks') AS BIGINT) AS attempts, task_set
  FROM entries LEFT JOIN task_sets USING (file)
)
SELECT id, ROUND(cost / NULLIF(successes, 0), 4) AS "USD per Success", ROUND(cost, 4) AS "USD",
       successes AS "Successes", scored AS "Scored", total AS "# Tasks",
       attempts > 0 AND 20 * (attempts - scored) <= attempts AS "Complete",
       attempts AS "Attempts", ROUND(model_cost / NULLIF(total, 0), 4) AS "Model USD per Task",
       ROUND(model_cost / NULLIF(successes, 0), 4) AS "Model USD per Success", task_set AS "Task Set"
FROM costs ORDER BY COALESCE(20 * (attempts - scored) > attempts, FALSE), "USD per Success" ASC NULLS LAST, id;
