-- The leaderboard page's own four columns (its query knows the role white_agent only), with the id of any other role as
-- well, the rate of all tasks, and whether the submission is complete: at most 5 % of its tasks aborted or unscored.
-- One row a submission, best first; incomplete ones rank below all others, so that a lost task cannot win a place.
-- What a file states is believed only as far as its tasks bear it out, and older files state nothing: both values are
-- made from the tasks' verdicts or the counts, whichever lose more, and the worse of stated and made is shown. NULL
-- where a file has neither. "Decided By" names what decided the rate (checks, webarena_verified, a judge model),
-- and labels a judge model whose unreadable replies count as failures ("published fidelity"). "Recorded By" tells whether
-- the judge or the agent itself recorded the evidence.
-- Read as JSON, so that a page with none but older files gives rows and no error. The id is looked up by a JSON
-- pointer, since a role may have any name.
WITH entries AS (
  SELECT ROW_NUMBER() OVER () AS number, to_json(t.participants) AS ids, to_json(unnest) AS result
  FROM results t, UNNEST(t.results)
),
verdicts AS (
  SELECT number, UNNEST(json_extract_string(result, '$.detail.tasks[*].verdict')) AS verdict FROM entries
),
truths AS (
  SELECT number, UNNEST(json_extract_string(result, '$.detail.tasks[*].decided_by')) AS truth,
         (result ->> '/detail/judge/model') || CASE WHEN result ->> '/detail/judge/fidelity' = 'published'
           THEN ' (published fidelity)' ELSE '' END AS model FROM entries
),
decided AS (
  SELECT number, string_agg(DISTINCT CASE WHEN truth = 'judge' THEN COALESCE(model, truth) ELSE truth END, ', '
           ORDER BY CASE WHEN truth = 'judge' THEN COALESCE(model, truth) ELSE truth END) AS decided
  FROM truths WHERE truth <> '' GROUP BY number
),
lost AS (
  SELECT number, COUNT(*) AS tasks FROM verdicts WHERE verdict IN ('unscored', 'aborted') GROUP BY number
),
stated AS (
  SELECT COALESCE(
           ids ->> '/white_agent', ids ->> ('/' || REPLACE(REPLACE(result ->> 'winner', '~', '~0'), '/', '~1'))
         ) AS id,
         TRY_CAST(result ->> '/detail/success_rate' AS DOUBLE) AS rate,
         TRY_CAST(result ->> '/detail/successful_tasks' AS BIGINT) AS completed,
         TRY_CAST(result ->> '/detail/total_tasks' AS BIGINT) AS total,
         GREATEST(
           CASE WHEN json_array_length(result, '/detail/tasks') > 0 THEN COALESCE(lost.tasks, 0) END,
           TRY_CAST(result ->> '/detail/unscored_tasks' AS BIGINT) + TRY_CAST(result ->> '/detail/aborted_tasks' AS BIGINT)
         ) AS lost,
         TRY_CAST(result ->> '/detail/success_rate_of_all' AS DOUBLE) AS rate_of_all,
         TRY_CAST(result ->> '/detail/is_complete' AS BOOLEAN) AS is_complete, decided,
         COALESCE(TRY_CAST(result ->> '/detail/self_recorded' AS BOOLEAN), FALSE)
           OR CAST(json_extract(result, '$.detail.tasks[*].flags') AS VARCHAR) LIKE '%"self_recorded"%' AS self_recorded
  FROM entries LEFT JOIN lost USING (number) LEFT JOIN decided USING (number)
),
made AS (
  -- The rate times the scored tasks is a whole number of successes, however the rate was rounded.
  SELECT *, 100 * ROUND(rate / 100 * (total - lost)) / NULLIF(total, 0) AS made_rate,
         total > 0 AND 20 * lost <= total AS made_complete
  FROM stated
),
shown AS (
  SELECT *, LEAST(rate_of_all, made_rate) AS shown_rate,
         COALESCE(made_complete, is_complete) AND COALESCE(is_complete, TRUE) AS complete
  FROM made
)
SELECT id, ROUND(rate, 1) AS "Success Rate", completed AS "Completed", total AS "# Tasks",
       ROUND(shown_rate, 1) AS "Success Rate of All", complete AS "Complete", decided AS "Decided By",
       IF(self_recorded, 'agent', 'judge') AS "Recorded By"
FROM shown ORDER BY COALESCE(complete, TRUE) DESC, ROUND(rate, 1) DESC;
