-- One row per submission, best first: the leaderboard page's own four columns, for participants of any role (the page's
-- own query knows only the role white_agent), the rate of all tasks, and whether the submission is complete: at most 5 % of
-- its tasks are aborted or unscored. Incomplete submissions rank below all others, so that losing a task gains nothing.
-- A file's own values for "Success Rate of All" and "Complete" are not trusted. Both are recomputed from the verdicts and
-- from the counts, and the worst of the values is shown; NULL if a file has neither verdicts nor counts (older files).
-- Rows are ranked within one task set: "Task Set" is computed from the tasks themselves. "Decided By" names what decided
-- the rate (checks, another method without a model, a judge model), and marks a judge model whose unreadable replies count as failures
-- ("published fidelity"). "Recorded By" says whether the judge or the agent itself recorded the evidence. "Excluded" lists
-- the tasks that were deliberately not played, with their reasons. "Corrected by Labels" is the success rate by people's labels of a
-- sample, as the file states it; it ranks nothing, and is NULL without labels.
-- Files are read as JSON, so that a page that has only older files shows rows instead of an error. The id is looked up by a
-- JSON pointer, because a role may have any name.
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
verdicts AS (
  SELECT number, UNNEST(json_extract_string(result, '$.detail.tasks[*].verdict')) AS verdict FROM entries
),
truths AS (
  -- Some pages give partial rewards, so their rows say which rewards count as a success.
  SELECT number, (task ->> 'decided_by') || COALESCE(' (' || (task ->> 'success_rule') || ' reward)', '') AS truth, model
  FROM (
    SELECT number, UNNEST(CAST(result -> '/detail/tasks' AS JSON[])) AS task,
           (result ->> '/detail/judge/model') || CASE WHEN result ->> '/detail/judge/fidelity' = 'published'
             THEN ' (published fidelity)' ELSE '' END AS model FROM entries
  )
),
decided AS (
  SELECT number, string_agg(DISTINCT CASE WHEN truth = 'judge' THEN COALESCE(model, truth) ELSE truth END, ', '
           ORDER BY CASE WHEN truth = 'judge' THEN COALESCE(model, truth) ELSE truth END) AS decided
  FROM truths WHERE truth <> '' GROUP BY number
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
lost AS (
  SELECT number, COUNT(*) FILTER (WHERE verdict IN ('unscored', 'aborted')) AS tasks,
         COUNT(*) FILTER (WHERE verdict = 'success') AS successes
  FROM verdicts GROUP BY number
),
attempted AS (
  -- Files without epochs have an entry for each task.
  SELECT number, COALESCE(IF(task ->> 'epoch' IS NULL, NULL, task ->> 'task_id'), 'entry ' || ROW_NUMBER() OVER ()) AS name,
         task ->> 'verdict' AS verdict
  FROM (SELECT number, UNNEST(CAST(result -> '/detail/tasks' AS JSON[])) AS task FROM entries)
),
task_rates AS (
  SELECT number, COUNT(verdict) AS verdicts, COUNT(*) FILTER (WHERE verdict = 'success')
           / NULLIF(COUNT(*) FILTER (WHERE verdict IS NULL OR verdict NOT IN ('unscored', 'aborted')), 0) AS rate
  FROM attempted GROUP BY number, name
),
borne_out AS (
  SELECT number, COALESCE(100 * AVG(rate), 0) AS rate FROM task_rates GROUP BY number HAVING SUM(verdicts) > 0
),
left_out AS (
  SELECT number, LEFT(string_agg(concat(each ->> 'task_id', ' (by the ', each ->> 'by', '): ', each ->> 'reason'), '; '), 500)
           AS excluded
  FROM (SELECT number, UNNEST(json_extract(result, '$.detail.excluded[*]')) AS each FROM entries) GROUP BY number
),
stated AS (
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
         LEAST(TRY_CAST(result ->> '/detail/success_rate' AS DOUBLE), borne_out.rate) AS rate,
         TRY_CAST(result ->> '/detail/successful_tasks' AS BIGINT) AS completed,
         TRY_CAST(result ->> '/detail/total_tasks' AS BIGINT) AS total,
         -- With several epochs, there are more attempts than tasks: one per entry.
         IF(TRY_CAST(result ->> '/detail/attempts' AS BIGINT) > total,
            GREATEST(json_array_length(result, '/detail/tasks')::BIGINT, total), total) AS attempts,
         lost.successes,
         GREATEST(
           CASE WHEN json_array_length(result, '/detail/tasks') > 0 THEN COALESCE(lost.tasks, 0) END,
           TRY_CAST(result ->> '/detail/unscored_tasks' AS BIGINT) + TRY_CAST(result ->> '/detail/aborted_tasks' AS BIGINT)
         ) AS lost,
         TRY_CAST(result ->> '/detail/success_rate_of_all' AS DOUBLE) AS rate_of_all,
         TRY_CAST(result ->> '/detail/is_complete' AS BOOLEAN) AS is_complete, decided, task_set,
         result -> '/detail/provenance/identity' AS played, result -> '/detail/provenance' AS made_with,
         COALESCE(TRY_CAST(result ->> '/detail/self_recorded' AS BOOLEAN), FALSE)
           OR CAST(json_extract(result, '$.detail.tasks[*].flags') AS VARCHAR) LIKE '%"self_recorded"%' AS self_recorded,
         left_out.excluded,
         TRY_CAST(result ->> '/detail/corrected_success_rate' AS DOUBLE) AS corrected,
         TRY_CAST(result ->> '/detail/labels/labels' AS BIGINT) AS labels
  FROM entries LEFT JOIN lost USING (number) LEFT JOIN decided USING (number) LEFT JOIN task_sets USING (file)
       LEFT JOIN borne_out USING (number) LEFT JOIN left_out USING (number)
),
made AS (
  -- The rate times the scored tasks is a whole number of successes, however the rate was rounded. With several epochs it
  -- is a mean over tasks, and the successes are counted.
  SELECT *, IF(attempts > total, 100.0 * successes / attempts,
               100 * ROUND(rate / 100 * (total - lost)) / NULLIF(total, 0)) AS made_rate,
         attempts > 0 AND 20 * lost <= attempts AS made_complete
  FROM stated
),
shown AS (
  SELECT *, LEAST(rate_of_all, made_rate) AS shown_rate,
         COALESCE(made_complete, is_complete) AND COALESCE(is_complete, TRUE) AS complete
  FROM made
)
SELECT id, ROUND(rate, 1) AS "Success Rate", completed AS "Completed", total AS "# Tasks",
       ROUND(shown_rate, 1) AS "Success Rate of All", complete AS "Complete", decided AS "Decided By",
       IF(self_recorded, 'agent', 'judge') AS "Recorded By",
       played ->> 'name' AS "Name", NULLIF(concat_ws(' ', played ->> 'card_name', played ->> 'card_version'), '') AS "Agent",
       played ->> 'model' AS "Model", played ->> 'revision' AS "Revision", played ->> 'scenario' AS "Scenario",
       NULLIF(concat_ws(', ', made_with ->> '/environment/browser', made_with ->> '/environment/browser_mode',
                        IF(made_with ->> '/environment/guarded' = 'false', 'no guard', NULL)), '') AS "Browser", made_with ->> 'settle' AS "Settle",
       made_with ->> 'actions' AS "Actions", attempts AS "Attempts", task_set AS "Task Set", excluded AS "Excluded",
       ROUND(corrected, 1) AS "Corrected by Labels", labels AS "Labels"
FROM shown
ORDER BY MAX(IF(COALESCE(complete, TRUE), ROUND(rate, 1), NULL)) OVER (PARTITION BY task_set) DESC NULLS LAST, task_set,
         COALESCE(complete, TRUE) DESC, ROUND(rate, 1) DESC;
