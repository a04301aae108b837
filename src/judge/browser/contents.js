// Runs in the page: what an element contains, and which options of a select texts stand for. Used by `contents.cjs`.
() => {
  const MAX_CHARS = 20000;
  const [MAX_LISTED, MAX_QUOTED] = [30, 80];
  const SWITCHES = new Set(["checkbox", "menuitemcheckbox", "menuitemradio", "radio", "switch"]);
  const BOXES = "input[type=checkbox], input[type=radio]";
  const SECRETS = "input[type=password], [autocomplete*=password], [autocomplete=one-time-code], [autocomplete^=cc-]";
  const DISABLED = ":disabled, [aria-disabled=true]";

  const squeezed = text => (text ?? "").replace(/[\u200b\u00ad]/g, "").replace(/\s+/g, " ").trim();
  // As the snapshot shows it, and as it is drawn.
  const labelOf = option => squeezed(option.getAttribute("aria-label")) || squeezed(option.text) || squeezed(option.label);
  const drawnLabelOf = option => squeezed(option.label);
  const groupOf = option => option.closest("optgroup");
  const quoted = text => JSON.stringify(text.length > MAX_QUOTED ? `${text.slice(0, MAX_QUOTED)}…` : text);
  // What tells options with the same label apart.
  const placeOf = option => `${groupOf(option) ? `group ${quoted(squeezed(groupOf(option).label))}, ` : ""}value ${quoted(option.value)}`;
  // A label stands for its control, as it does for Playwright.
  const fieldOf = element => element.matches("input, select, textarea") || element.isContentEditable ? element :
    element.closest("label")?.control ?? element;

  const contentsOf = field => {
    if (field.matches("select")) {
      const labels = [...field.options].map(labelOf), chosen = [...field.selectedOptions];
      const alike = chosen.filter(each => labels.filter(label => label === labelOf(each)).length > 1);
      return {
        shown: chosen.map(labelOf),
        value: alike.length ? alike.map(each => `${quoted(labelOf(each))} (${placeOf(each)})`).join(", ") : null,
      };
    }
    if (field.matches(BOXES)) return { shown: [String(field.checked)] };
    if (SWITCHES.has(field.getAttribute("role"))) return { shown: [String(field.getAttribute("aria-checked") === "true")] };
    if (field.matches("input[type=file]")) return { shown: [...field.files].map(({ name }) => name) };
    const text = field.matches(SECRETS) ? null : field.matches("input, textarea") ? field.value : field.innerText;
    return { value: text?.slice(0, MAX_CHARS) ?? null, names: [field.getAttribute("name") ?? "", field.id] };
  };

  // A promise of what an element contains: when its next `change` event has ended, at the latest at the `end`.
  const watch = element => {
    const field = fieldOf(element);
    let end;
    const contents = new Promise(done => { end = done; }).then(() => contentsOf(field));
    if (field.matches(`select, input[type=file], ${BOXES}`)) {
      const keep = ({ currentTarget }) => { if (currentTarget !== field) end(); };
      // After those listeners of the page that are there by then.
      const begin = () => [field, field.getRootNode()].forEach(each => each.addEventListener("change", keep, { once: true }));
      field.addEventListener("change", begin, { capture: true, once: true });
    }
    return { contents, end };
  };

  // An equal label comes first; a value counts where no label is equal. Otherwise there is a `problem`.
  const choose = (element, texts) => {
    const select = fieldOf(element);
    if (!select.matches("select")) return { problem: "This is not a dropdown of the browser's own: click it, and then the option" };
    if (select.matches(DISABLED)) return { problem: "This dropdown is disabled" };
    const isDrawn = each => getComputedStyle(each).display !== "none";
    const options = [...select.options].filter(each => isDrawn(each) && (!groupOf(each) || isDrawn(groupOf(each))));
    const listed = (all, told) => all.slice(0, MAX_LISTED).map(told).join("; ") +
      (all.length > MAX_LISTED ? `; and ${all.length - MAX_LISTED} more` : "");
    const theOptions = `The options are: ${listed(options, each => quoted(labelOf(each)))}`;
    const equalTo = text => {
      const readings = [[labelOf, squeezed(text)], [drawnLabelOf, squeezed(text)], [({ value }) => value, text]];
      for (const [read, wanted] of readings) {
        const equal = options.filter(each => read(each) === wanted);
        if (equal.length) return equal;
      }
      return [];
    };
    const found = [];
    for (const text of texts) {
      const equal = equalTo(text), enabled = equal.filter(each => !each.matches(DISABLED));
      if (!equal.length) return { problem: `There is no option ${quoted(text)}. ${theOptions}` };
      if (!enabled.length) return { problem: `The option ${quoted(text)} is disabled` };
      // Nothing depends on which one is chosen of those with the same label, group and value.
      const different = new Set(enabled.map(each => `${quoted(labelOf(each))}, ${placeOf(each)}`));
      if (different.size > 1) return { problem: `${enabled.length} options are called ${quoted(text)}: ${listed([...different], each => each)}. Send the value of one` };
      found.push(enabled[0]);
    }
    if (!select.multiple && new Set(found).size !== 1) return { problem: `One option can be chosen here. ${theOptions}` };
    return { indices: found.map(({ index }) => index), labels: found.map(labelOf) };
  };

  return { choose, watch };
}
