// Draws one deployment and lets a reader move it. Every figure comes from CATALOGUE: `of` of a model and
// `compose` are the package's own expressions, printed; nothing here knows what inference costs.

const PARTS = [
  ["memory_bytes", "memory", "B"], ["weight_bytes", "weights", "B"], ["cache_bytes", "cache of one sequence", "B"],
  ["largest_batch", "largest batch", ""], ["flops", "FLOPs", "FLOP"], ["bytes", "bytes", "B"], ["sent", "sent", "B"],
  ["seconds_per_token", "latency", "s"], ["tokens_per_s", "throughput", "tokens/s"],
  ["dollars_per_million", "cost per million tokens", "$"],
];
// A context begins at 2: a prompt of one token is a decode step, which some models run by another kernel.
const LIMITS = { batch: [1, 65536], context: [2, 10485760], free: [0, 90], price: [0, 10000] };

// What a slider stops at: quarter powers of two, each whole number once, so that every key press moves it.
const ladder = (low, power) => [...new Set(Array.from({ length: 4 * power + 1 }, (_, k) => Math.round(2 ** (k / 4))))].filter((v) => v >= low);
const STOPS = { batch: ladder(LIMITS.batch[0], 16), context: ladder(LIMITS.context[0], 20) };
const nearest = (name, value) => {
  const stop = STOPS[name].findIndex((v) => v >= value);
  return stop < 0 ? STOPS[name].length - 1 : stop;
};

const grouped = (n) => n.toLocaleString("en-US", { maximumFractionDigits: 0 });

function prefixed(value, unit) {
  if (unit === "$") return "$" + (value >= 100 ? grouped(value) : value.toPrecision(3));
  if (unit === "" || (unit === "tokens/s" && value >= 100)) return `${grouped(value)} ${unit}`.trim();
  const [scale, prefix] = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]]
    .find(([size]) => +value.toPrecision(4) >= size * (1 - 1e-9)) || [1, ""];
  const short = unit === "tokens/s" ? [1, ""] : [scale, prefix];
  return `${+(value / short[0]).toPrecision(4)} ${short[1]}${unit}`;
}

// The settings that make sense, those given before those to start with: known names, numbers within limits; anything
// else falls back.
function sensible(given, start) {
  const { models, accelerators, formats } = CATALOGUE;
  const chosen = { ...CATALOGUE.starting };
  if (!(chosen.model in models)) chosen.model = Object.keys(models)[0];
  if (!(chosen.on in accelerators)) chosen.on = Object.keys(accelerators)[0];
  for (const [name, value] of [...Object.entries(start), ...Object.entries(given)]) {
    if (name in LIMITS) {
      const number = Number(value), [low, high] = LIMITS[name];
      if (String(value).trim() === "" || !Number.isFinite(number)) continue;
      const bounded = Math.min(high, Math.max(low, number));
      chosen[name] = name === "price" || name === "free" ? bounded : Math.round(bounded);
    } else if ((name === "model" && Object.hasOwn(models, value)) || (name === "on" && Object.hasOwn(accelerators, value))
      || (name === "cache" && Object.hasOwn(formats, value))
      || (name === "tensor" && CATALOGUE.tensor.includes(Number(value)))
      || (name === "weights" && (value === "stored" || Object.hasOwn(formats, value)))) chosen[name] = name === "tensor" ? Number(value) : value;
  }
  if (!degrees(chosen).includes(chosen.tensor)) chosen.tensor = Math.max(...degrees(chosen).filter((n) => n <= chosen.tensor));
  if (chosen.weights === "stored" && !models[chosen.model].stored) chosen.weights = "bf16";
  return chosen;
}

// A model's own formulas, put together by those that hold for all; in prefill one prompt takes the place of a step.
function computed(model, tensor, given) {
  const own = CATALOGUE.models[model].of[tensor](given), all = { ...given, ...own, devices: tensor };
  const prefill = CATALOGUE.compose({ ...all, flops: own.prefill_flops, bytes: own.prefill_bytes, sent: own.prefill_sent });
  return { ...own, ...CATALOGUE.compose(all), ttft_s: prefill.seconds_per_token, prefill_intensity: prefill.intensity };
}

function answer(chosen) {
  const model = CATALOGUE.models[chosen.model], device = CATALOGUE.accelerators[chosen.on];
  const width = chosen.weights === "stored" ? model.stored.bytes : CATALOGUE.formats[chosen.weights];
  const usable = Math.floor(device.capacity * (100 - chosen.free) / 100);
  const at = (context) => computed(chosen.model, chosen.tensor, { B: chosen.batch, S: context, b_w: width,
    b_kv: CATALOGUE.formats[chosen.cache], memory_bandwidth: device.bandwidth, peak: device.peak, capacity: usable,
    interconnect: device.interconnect || 1, price: chosen.price / 3600 });
  const found = at(chosen.context);
  return { ...found, usable, width, fits: found.memory_bytes <= usable,
    longest_context: longest((context) => at(context).memory_bytes <= usable) };
}

// How many devices may share the model: those it splits over evenly, and one alone where no link is on record.
const degrees = (chosen) => CATALOGUE.accelerators[chosen.on].interconnect
  ? Object.keys(CATALOGUE.models[chosen.model].of).map(Number) : [1];

// The cache never shrinks as the context grows, so halving the interval finds where it stops fitting.
function longest(fits) {
  if (fits(2 ** 50)) return Infinity;
  let low = 0, high = 2 ** 50;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (fits(middle)) low = middle; else high = middle;
  }
  return low;
}

function roofline(found, device) {
  const wide = 460, high = 300, left = 64, right = 26, top = 34, bottom = 46;
  const marks = [["decode", found.intensity, "var(--weights)", "circle"], ["prefill", found.prefill_intensity, "var(--cache)", "square"]];
  const spread = [found.ridge, ...marks.map((m) => m[1])];
  const x0 = Math.floor(Math.log10(Math.min(0.5, ...spread))), x1 = Math.ceil(Math.log10(Math.max(2000, ...spread) * 1.6));
  const y1 = Math.log10(device.peak) + 0.35, y0 = y1 - 0.35 - Math.log10(found.ridge) + x0;
  const x = (v) => left + (Math.log10(v) - x0) / (x1 - x0) * (wide - left - right);
  const y = (v) => high - bottom - (Math.log10(v) - y0) / (y1 - y0) * (high - top - bottom);
  const roof = (v) => Math.min(device.peak, v * device.bandwidth);
  let ticks = "";
  for (let e = x0; e <= x1; e++) {
    const at = x(10 ** e);
    ticks += `<path d="M${at} ${top}V${high - bottom}" stroke="var(--line)"/><text class="soft" x="${at}" y="${high - bottom + 18}" text-anchor="middle">${e < 4 ? +(10 ** e).toPrecision(1) : `${10 ** (e - 3)}k`}</text>`;
  }
  for (let e = Math.ceil(y0); e <= y1; e++) {
    ticks += `<path d="M${left} ${y(10 ** e)}H${wide - right}" stroke="var(--line)"/><text class="soft" x="${left - 6}" y="${y(10 ** e) + 4}" text-anchor="end">${prefixed(10 ** e, "")}</text>`;
  }
  ticks = ticks.replace(/>([\d,]+)<\/text>/g, (all, n) => n.length > 6 ? `>${prefixed(Number(n.replaceAll(",", "")), "x").replace("x", "")}</text>` : all);
  const edge = x(found.ridge), taken = marks.map(([, v]) => [x(v) - 9, x(v) + 9, y(roof(v)) - 9, y(roof(v)) + 9]);
  const value = (at) => 10 ** (x0 + (at - left) / (wide - left - right) * (x1 - x0));
  // A label stands inside, off the roof, the ridge and what is there already.
  const clear = ([from, to, over, under]) => from > left && to < wide && under < high - bottom
    && !(from < edge + 4 && to > edge - 4 && under > y(device.peak))
    && !taken.some((box) => from < box[1] && to > box[0] && over < box[3] && under > box[2])
    && !Array.from({ length: 21 }, (_, k) => y(roof(value(from + k * (to - from) / 20)))).some((line) => line > over - 3 && line < under + 3);
  const spots = [[12, 18, "start"], [-12, -8, "end"], [0, 26, "middle"], [0, -14, "middle"], [12, 26, "start"], [-12, 26, "end"],
    [-12, -26, "end"], [12, 38, "start"], [-12, 44, "end"]];
  const points = marks.map(([name, v, color, shape]) => {
    const cx = x(v), cy = y(roof(v)), text = `${name} ${+v.toPrecision(3)}`, long = 7.8 * text.length;
    const box = ([dx, dy, anchor]) => { const from = cx + dx - { start: 0, middle: long / 2, end: long }[anchor];
      return [from, from + long, cy + dy - 11, cy + dy + 4]; };
    const spot = spots.find((one) => clear(box(one))) || spots[0], [dx, dy, anchor] = spot;
    taken.push(box(spot));
    const drawn = shape === "circle" ? `<circle cx="${cx}" cy="${cy}" r="7" fill="${color}" stroke="var(--ink)" stroke-width="1.5"/>`
      : `<rect x="${cx - 6.5}" y="${cy - 6.5}" width="13" height="13" fill="${color}" stroke="var(--ink)" stroke-width="1.5"/>`;
    return `${drawn}<text x="${cx + dx}" y="${cy + dy}" text-anchor="${anchor}" class="halo" font-weight="600">${text}</text>`;
  }).join("");
  const side = (v) => v < found.ridge ? "waits for memory" : "is limited by arithmetic";
  return `<svg viewBox="0 0 ${wide} ${high}" role="img" aria-label="Roofline: decode at ${found.intensity.toPrecision(3)} FLOP per byte ${side(found.intensity)}; prefill at ${found.prefill_intensity.toPrecision(3)} ${side(found.prefill_intensity)}; the ridge is ${found.ridge.toPrecision(3)}.">
${ticks}<path d="M${x(10 ** x0)} ${y(roof(10 ** x0))}L${edge} ${y(device.peak)}H${wide - right}" fill="none" stroke="var(--ink)" stroke-width="2.5"/>
<path d="M${edge} ${y(device.peak)}V${high - bottom}" stroke="var(--wall)" stroke-width="1.5" stroke-dasharray="5 4"/>
<text x="${edge}" y="${top - 12}" text-anchor="middle">ridge ${+found.ridge.toPrecision(3)}</text>
${points}<text class="soft" x="${(left + wide - right) / 2}" y="${high - 8}" text-anchor="middle">arithmetic intensity [FLOP/byte]</text>
<text class="soft" x="${left - 52}" y="${top - 12}">FLOP/s</text></svg>`;
}

const readable = (text) => text.replace(/<mn>(\d+)<\/mn>/g, (all, digits) => `<mn>${digits.replace(/\B(?=(\d{3})+$)/g, ",")}</mn>`);
const maths = ([which, ...numbers]) => CATALOGUE.skeletons[which].replace(/#(?=<)/g, () => numbers.shift());

function formulas(chosen, found) {
  const own = CATALOGUE.models[chosen.model].maths[chosen.tensor], { leaves } = CATALOGUE;
  const general = CATALOGUE.general[chosen.tensor > 1 ? "together" : "alone"];
  const rows = PARTS.filter(([name]) => name !== "sent" || chosen.tensor > 1).map(([name, words, unit]) => {
    const text = name in general ? general[name] : maths(own[leaves.indexOf(name)]);
    return `<tr><th scope="row">${words}</th><td>${prefixed(found[name], unit)}</td><td>= <math displaystyle="true">${readable(text)}</math></td></tr>`;
  });
  return `<table><tbody>${rows.join("")}</tbody></table>`;
}

// A long sum breaks between its terms: each becomes a formula of its own, its sign before it.
function breakable(table) {
  for (const math of table.querySelectorAll("math")) {
    const parts = [...math.firstElementChild.children];
    for (let k = 1; k < parts.length - 1; k++) {
      if (!/^[-+−]$/.test(parts[k].textContent)) continue;
      const term = math.cloneNode(), row = math.firstElementChild.cloneNode();
      parts[k].setAttribute("form", "infix");
      row.append(parts[k], parts[k + 1]);
      term.append(row);
      math.parentElement.append(" ", term);
    }
  }
}

const option = (value, text) => new Option(text, value);
let mounted = 0;

// Build the control inside `root`; `changed` hears of every new state. Returns a function that sets a state.
function mount(root, start, changed = () => {}) {
  const id = `cm${mounted++}`, { models, accelerators, formats } = CATALOGUE;
  const slider = (name, words, low, high) => `<div><div class="cm-line"><label for="${id}-${name}">${words}</label><output id="${id}-${name}-out" for="${id}-${name}"></output></div>
<input type="range" id="${id}-${name}" data-name="${name}" min="${low}" max="${high}" step="1"></div>`;
  const sized = (name, words) => `<div><div class="cm-line"><label for="${id}-${name}">${words}</label><input type="number" id="${id}-${name}-n" data-number="${name}" aria-label="${words}, exactly" min="${LIMITS[name][0]}" max="${LIMITS[name][1]}" step="1"></div>
<input type="range" id="${id}-${name}" data-name="${name}" min="0" max="${STOPS[name].length - 1}" step="1"></div>`;
  const number = (name, words) => `<div class="cm-line"><label for="${id}-${name}-n">${words}</label><input type="number" id="${id}-${name}-n" data-number="${name}" min="${LIMITS[name][0]}" max="${LIMITS[name][1]}" step="${name === "price" ? "0.01" : "any"}"></div>`;
  root.classList.add("cm");
  root.innerHTML = `<div class="cm-grid"><form class="cm-panel cm-controls" aria-label="What is deployed">
<div><label for="${id}-model">Model</label><select id="${id}-model" data-name="model"></select></div>
<div><label for="${id}-on">Accelerator</label><select id="${id}-on" data-name="on"></select></div>
${sized("batch", "Batch [sequences]")}${sized("context", "Context [tokens]")}
${slider("tensor", "Tensor parallel", 0, 0)}${slider("weights", "Weights", 0, 0)}${slider("cache", "Cache", 0, Object.keys(formats).length - 1)}
${number("free", "Keep free [%]")}${number("price", "Price [$ per hour]")}</form>
<div class="cm-results"><section class="cm-panel cm-fit" aria-label="Memory"><p class="cm-verdict" role="status" aria-live="polite"></p>
<div class="cm-memory"></div></section><div><ul class="cm-figures" aria-label="Time and money"></ul><p class="cm-note cm-warn"></p></div>
<section class="cm-panel"><h2></h2><div class="cm-roof"></div></section>
<section class="cm-panel cm-maths" tabindex="0" aria-label="Formulas"><h2>How it is computed</h2><div class="cm-table"></div></section></div></div>`;
  const find = (selector) => root.querySelector(selector), input = (name) => find(`[data-name="${name}"]`);
  const rounded = document.createElement("optgroup"), published = document.createElement("optgroup");
  [rounded.label, published.label] = ["Rounded, for mental arithmetic", "Published"];
  for (const [name, model] of Object.entries(models)) (model.rounded ? rounded : published).append(option(name, model.title));
  input("model").append(...[rounded, published].filter((group) => group.children.length));
  input("on").append(...Object.entries(accelerators).map(([name, device]) => option(name, device.title)));
  let chosen;

  const weightStops = () => [...(models[chosen.model].stored ? ["stored"] : []), ...Object.keys(formats)];
  const bits = (bytes) => `${+(8 * bytes).toPrecision(3)} bit`;

  function show() {
    const model = models[chosen.model], device = accelerators[chosen.on], found = answer(chosen);
    for (const name of ["model", "on"]) input(name).value = chosen[name];
    for (const name of ["batch", "context"]) {
      input(name).value = nearest(name, chosen[name]);
      input(name).setAttribute("aria-valuetext", grouped(chosen[name]));
    }
    for (const name of ["batch", "context", "free", "price"]) {
      const box = find(`[data-number="${name}"]`);
      if (box !== document.activeElement) box.value = chosen[name];
    }
    input("weights").max = weightStops().length - 1;
    input("weights").value = weightStops().indexOf(chosen.weights);
    input("cache").value = Object.keys(formats).indexOf(chosen.cache);
    const many = degrees(chosen);
    input("tensor").max = many.length - 1;
    input("tensor").value = many.indexOf(chosen.tensor);
    input("tensor").disabled = many.length < 2;
    const told = { tensor: chosen.tensor === 1 ? "1 device" : `${chosen.tensor} devices`, weights: chosen.weights === "stored" ? `${bits(found.width)}, as stored` : `${bits(found.width)}, ${chosen.weights}`,
      cache: `${bits(formats[chosen.cache])}, ${chosen.cache}` };
    for (const name of Object.keys(told)) {
      find(`#${id}-${name}-out`).textContent = told[name];
      input(name).setAttribute("aria-valuetext", told[name]);
    }
    const cache = found.memory_bytes - found.weight_bytes, most = Math.max(found.memory_bytes, device.capacity);
    const share = (bytes) => `${100 * bytes / most}%`, room = found.usable - found.memory_bytes;
    const verdict = find(".cm-verdict");
    verdict.classList.toggle("cm-over", !found.fits);
    const reach = found.longest_context === Infinity ? "any length" : `${grouped(found.longest_context)} tokens`;
    const most_sequences = Number.isFinite(found.largest_batch) ? grouped(found.largest_batch) : "any number of";
    verdict.innerHTML = found.fits ? `<strong>It fits.</strong> At this context ${most_sequences} sequences fit; at this batch the context can reach ${reach}.`
      : found.weight_bytes > found.usable ? `<strong>The weights alone do not fit.</strong> They exceed the memory by ${prefixed(found.weight_bytes - found.usable, "B")}.`
        : `<strong>The cache does not fit</strong>: ${prefixed(-room, "B")} too much. At this context ${most_sequences} sequences fit; at this batch ${found.longest_context ? reach : "no token"}.`;
    find(".cm-memory").innerHTML = `<div class="cm-bar" role="img" aria-label="Memory: weights ${prefixed(found.weight_bytes, "B")}, cache ${prefixed(cache, "B")}, of ${prefixed(found.usable, "B")}" style="margin-top:.7rem">
<i class="cm-weights" style="width:${share(found.weight_bytes)}"></i><i class="cm-cache" style="width:${share(cache)}"></i>
${room < 0 ? `<i class="cm-over-area" style="left:${share(found.usable)}"></i>` : ""}<i class="cm-capacity" style="left:calc(${share(found.usable)} - 3px)"></i></div>
<ul class="cm-key"><li><i class="cm-weights"></i>weights ${prefixed(found.weight_bytes, "B")}</li><li><i class="cm-cache"></i>cache ${prefixed(cache, "B")}</li>
<li><i class="cm-room"></i>${room < 0 ? `over by ${prefixed(-room, "B")}` : `free ${prefixed(room, "B")}`}</li><li><i class="cm-edge"></i>usable ${prefixed(found.usable, "B")}</li></ul>`;
    const compute = found.compute_seconds >= found.memory_seconds, apart = chosen.tensor > 1;
    const talks = found.communication_seconds > Math.max(found.compute_seconds, found.memory_seconds);
    const limit = talks ? "communication" : compute ? "arithmetic" : "memory";
    find(".cm-figures").innerHTML = [
      ["time per token", prefixed(found.seconds_per_token, "s"), `${limit} is the limit`],
      ["each user reads", prefixed(1 / found.seconds_per_token, "tokens/s"), "one sequence"],
      ["all together", prefixed(found.tokens_per_s, "tokens/s"), `batch of ${grouped(chosen.batch)}`],
      ["first token after", prefixed(found.ttft_s, "s"), `a prompt of ${grouped(chosen.context)}`],
      ...(apart ? [["of it, talking", prefixed(found.communication_seconds, "s"), `${prefixed(found.sent, "B")} sent by each`]] : []),
      ["a million tokens", prefixed(found.dollars_per_million, "$"), `at $${chosen.price} per hour${apart ? " each" : ""}, always busy`],
    ].map(([name, value, about]) => `<li><span>${name}</span> <b>${value.replace("tokens/s", "<em>tokens/s</em>")}</b> <small>${about}</small></li>`).join("");
    find("h2").textContent = talks ? "Decoding waits for the link between devices" : compute ? "Decoding is limited by arithmetic" : `Decoding waits for memory: ${+(100 * found.intensity / found.ridge).toPrecision(2)} % of the arithmetic is used`;
    find(".cm-roof").innerHTML = roofline(found, device);
    find(".cm-table").innerHTML = formulas(chosen, found);
    breakable(find(".cm-table"));
    find(".cm-warn").textContent = [
      "Times are bounds: the fastest that memory and arithmetic allow.",
      model.positions && chosen.context > model.positions ? `The model was made for contexts up to ${grouped(model.positions)} tokens.` : "",
      apart ? `Memory, roofline and formulas are those of one of ${chosen.tensor} devices; all-reduces go round a ring, one after the other.` : "",
      apart && model.rounded ? "What the devices send each other is left out: a model known by its size alone has no width." : "",
      device.interconnect ? model.refused || "" : "No link between devices is on record for this accelerator.",
      device.dtype === "bf16" ? "" : `This device computes in ${device.dtype}.`,
    ].join(" ");
  }

  function set(given) {
    chosen = sensible(given, chosen || start);
    show();
  }
  function tell(given) {
    set(given);
    changed({ ...chosen });
  }
  root.addEventListener("input", ({ target }) => {
    const { name, number } = target.dataset;
    if (number) tell({ [number]: target.value });
    else if (name === "batch" || name === "context") tell({ [name]: STOPS[name][target.value] });
    else if (name === "tensor") tell({ tensor: degrees(chosen)[target.value] });
    else if (name === "weights") tell({ weights: weightStops()[target.value] });
    else if (name === "cache") tell({ cache: Object.keys(formats)[target.value] });
    else if (name) tell({ [name]: target.value });
  });
  root.addEventListener("focusout", () => show());
  root.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const theme = () => { const lab = document.body.dataset.jpThemeLight;
    root.dataset.theme = (lab ? lab === "false" : dark.matches) ? "dark" : "light"; };
  dark.addEventListener("change", theme);
  theme();
  set({});
  return set;
}
