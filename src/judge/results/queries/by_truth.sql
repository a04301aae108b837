-- One row per participant, task set and what decided the tasks (checks, another method without a model, the judge model by name; unknown in older
-- files), over all of the participant's submissions. Unscored and aborted tasks count in "Success Rate of All" only; a row with
-- more than 5 % of them is incomplete and ranks below the complete ones. "Shared State" counts the tasks on a site that was
-- not reset to its initial state.
-- If tasks were played in several epochs, rates are means over tasks, and the columns of successes and scored tasks count
-- attempts. Older files have no verdicts, only `success` or `passed`. If these do not add up to the file's own success
-- rate, they mean that an episode ended, not that the task was done, and the file's tasks are left out.
-- Files are read as JSON, so that a page that has only older files shows rows instead of an error.
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
tasks AS (
  SELECT number, file, ids, result, UNNEST(CAST(result -> '/detail/tasks' AS JSON[])) AS task FROM entries
),
told AS (
  -- Agents without an id are identified by the participant's name, because rates of different agents must not be mixed.
  SELECT number, file, COALESCE(
           NULLIF(COALESCE(
             ids ->> '/white_agent', ids ->> ('/' || REPLACE(REPLACE(result ->> 'winner', '~', '~0'), '/', '~1'))
           ), ''),
           result ->> '/detail/provenance/identity/name',
           NULLIF(concat_ws(' ', result ->> '/detail/provenance/identity/card_name',
                                 result ->> '/detail/provenance/identity/card_version'), ''), ''
         ) AS id,
         CAST(result ->> '/detail/success_rate' AS DOUBLE) AS rate,
         COALESCE(task ->> 'decided_by', 'unknown') AS truth,
         -- As in `overall`.
         CASE WHEN task ->> 'decided_by' = 'judge' THEN COALESCE((result ->> '/detail/judge/model')
           || CASE WHEN result ->> '/detail/judge/fidelity' = 'published' THEN ' (published fidelity)' ELSE '' END, 'judge')
         ELSE COALESCE(task ->> 'decided_by', 'unknown') END AS decided, task ->> 'verdict' AS verdict,
         COALESCE(list_contains(CAST(task -> 'flags' AS VARCHAR[]), 'shared_state'), FALSE) AS is_shared,
         COALESCE(
           task ->> 'task_sha256',
           NULLIF(concat_ws(' ', task ->> 'task_id', task ->> 'website', task ->> 'task_description'), '')
         ) AS task_key,
         COALESCE(task ->> 'verdict' = 'success', COALESCE(task ->> 'success', task ->> 'passed', 'false') = 'true') AS success,
         -- The attempts at a task in several epochs belong together. Older files have one entry per task.
         COALESCE(IF(task ->> 'epoch' IS NULL, NULL, task ->> 'task_id'), 'entry ' || ROW_NUMBER() OVER ()) AS played
  FROM tasks
),
task_sets AS (
  -- Computed from the whole file, whose results may be shards of one set; the same in every query.
  SELECT file, LEFT(md5(string_agg(DISTINCT task_key, ',' ORDER BY task_key)), 8) AS task_set FROM told GROUP BY file
),
weighed AS (
  SELECT *, COUNT(verdict) OVER file AS verdicts, 100 * AVG(CAST(success AS INTEGER)) OVER file AS own_rate,
         COALESCE(verdict, '') NOT IN ('unscored', 'aborted') AS is_scored
  FROM told WINDOW file AS (PARTITION BY number)
),
per_task AS (
  SELECT id, truth, decided, COUNT(*) FILTER (WHERE is_scored AND success) AS successes,
         COUNT(*) FILTER (WHERE is_scored) AS scored, COUNT(*) AS attempts, ANY_VALUE(task_set) AS task_set,
         COUNT(*) FILTER (WHERE is_shared) AS shared
  FROM weighed JOIN task_sets USING (file)
  WHERE verdicts > 0 OR ABS(own_rate - COALESCE(rate, own_rate)) < 0.1
  GROUP BY number, played, id, truth, decided
),
counted AS (
  SELECT id, truth, decided, SUM(successes)::BIGINT AS successes, SUM(scored)::BIGINT AS scored, COUNT(*) AS total,
         SUM(attempts)::BIGINT AS attempts, 100 * AVG(successes / NULLIF(scored, 0)) AS rate,
         100 * AVG(successes / attempts) AS rate_of_all, SUM(shared)::BIGINT AS shared,
         task_set
  FROM per_task
  GROUP BY id, truth, decided, task_set
)
SELECT id, decided AS "Decided By", ROUND(rate, 1) AS "Success Rate",
       successes AS "Successes", scored AS "Scored", total AS "# Tasks",
       ROUND(rate_of_all, 1) AS "Success Rate of All", 20 * (attempts - scored) <= attempts AS "Complete",
       shared AS "Shared State", attempts AS "Attempts", task_set AS "Task Set"
FROM counted
ORDER BY CASE truth WHEN 'checks' THEN 1 WHEN 'judge' THEN 3 WHEN 'unknown' THEN 4 ELSE 2 END, truth, 20 * (attempts - scored) > attempts,
         "Success Rate" DESC, id, task_set;
