// The form, made from the table of settings, and the answer beside it, which follows every change.
const $ = (id) => document.getElementById(id);
const MAIN = ["model", "device", "num_devices", "task"];
const EXAMPLE = { model: "gpt2-xl", device: "rtx-4070ti" };
const PAUSE = 80; // milliseconds of rest after which a text that is being typed is asked; all else is asked at once

let worker, table, latest = 0, due = 0, next = 0, timer, asking = false;
const waiting = new Map(), state = {}, controls = {};

function ask(name, ...values) {
  return send({ name, values });
}

function send(message) {
  const id = ++next;
  return new Promise((resolve, reject) => {
    waiting.set(id, [resolve, reject]);
    worker.postMessage({ id, ...message });
  });
}

function say(text, wrong = false) {
  $("state").textContent = text;
  $("state").classList.toggle("error", wrong);
}

function element(kind, attributes = {}, ...inside) {
  const made = document.createElement(kind);
  for (const [name, value] of Object.entries(attributes))
    if (name in made && typeof value !== "string") made[name] = value;
    else if (value != null) made.setAttribute(name, value);
  made.append(...inside);
  return made;
}

// ---- the form

function field(setting) {
  const id = `set-${setting.name}`, help = `${id}-help`;
  const control = setting.name === "task" || setting.choices.length
    ? element("select", { id, "aria-describedby": help },
        element("option", { value: "" }, setting.name === "task" ? "what can be done?" : `as usual (${setting.default})`),
        ...setting.choices.map((choice) => element("option", { value: choice }, choice)))
    : element("input", { id, "aria-describedby": help, placeholder: setting.default, spellcheck: "false", autocapitalize: "off" });
  control.addEventListener("input", () => set(setting.name, control.value.trim(), control.tagName === "INPUT" ? PAUSE : 0));
  const parts = [element("label", { for: id }, words(setting.name)), control];
  if (setting.slider) parts.push(slider(setting, control));
  if (["model", "device"].includes(setting.name)) parts.push(proposals(setting.name, control));
  parts.push(element("small", { id: help }, setting.help));
  controls[setting.name] = { setting, control, box: element("div", { class: "field" }, ...parts) };
  return controls[setting.name].box;
}

function words(name) {
  return ({ num_devices: "Devices", seq_len: "Sequence length" })[name] ?? name[0].toUpperCase() + name.slice(1).replaceAll("_", " ");
}

function slider(setting, control) {
  const range = element("input", { type: "range", min: "0", max: String(Math.log2(setting.slider)), step: "1",
    value: "0", "aria-label": `${words(setting.name)}, in powers of two` });
  range.addEventListener("input", () => {
    control.value = String(2 ** Number(range.value));
    range.setAttribute("aria-valuetext", control.value);
    set(setting.name, control.value);
  });
  control.range = range;
  return range;
}

function proposals(name, control) {
  const list = element("datalist", { id: `${control.id}-list` });
  control.setAttribute("list", list.id);
  control.addEventListener("input", async () => {
    const text = control.value.trim();
    const { result } = await ask("found", `${name}s`, text);
    if (result && control.value.trim() === text)
      list.replaceChildren(...result.map((entry) => element("option", { value: entry.id }, entry.name)));
  });
  return list;
}

function form() {
  const by = Object.fromEntries(table.settings.map((setting) => [setting.name, setting]));
  by.task.choices = table.tasks;
  by.task.help = "None: what this machine does with this model.";
  const everyday = table.settings.filter((setting) => setting.everyday && !MAIN.includes(setting.name));
  const groups = new Map();
  for (const setting of table.settings)
    if (!setting.everyday && !MAIN.includes(setting.name)) groups.set(setting.group, [...(groups.get(setting.group) ?? []), setting]);
  const file = element("input", { type: "file", id: "file", accept: ".json,.gguf,.safetensors" });
  file.addEventListener("change", () => file.files[0] && drop(file.files[0]));
  const beside = element("input", { id: "set-beside", placeholder: "m4-max, rx-7900xtx", spellcheck: "false" });
  beside.addEventListener("input", () => set("beside", beside.value.trim(), PAUSE));
  controls.beside = { setting: { name: "beside", tasks: table.tasks }, control: beside, box: beside };
  $("question").replaceChildren(
    ...MAIN.map((name) => field(by[name])),
    ...everyday.map(field),
    ...[...groups].map(([group, settings]) =>
      element("details", {}, element("summary", {}, group), ...settings.map(field))),
    element("details", {}, element("summary", {}, "A model of one's own, other devices"),
      element("div", { class: "field" }, element("label", { for: "file" }, "config.json, .gguf or .safetensors"), file,
        element("small", {}, "Read here, its header alone; nothing is sent anywhere. It may be dropped on the page too.")),
      element("div", { class: "field" }, element("label", { for: "set-beside" }, "Devices beside it"), beside,
        element("small", {}, "Names with commas between."))),
  );
  $("question").addEventListener("submit", (event) => event.preventDefault());
}

function matters(setting) {
  return state.task ? setting.tasks.includes(state.task) : MAIN.includes(setting.name) || !setting.everyday;
}

function shown() {
  for (const { setting, control, box } of Object.values(controls)) {
    if (setting.name !== "beside") box.hidden = !matters(setting);
    if (document.activeElement !== control) control.value = nameOf(state[setting.name] ?? "");
  }
}

const nameOf = (value) => (value.startsWith("/dropped/") ? value.split("/").pop() : value);

// ---- the state, which is the address

function set(name, value, pause) {
  if (value) state[name] = value;
  else delete state[name];
  changed(pause);
}

function changed(pause = 0) {
  const kept = Object.entries(state).filter(([, value]) => !value.startsWith("/dropped/"));
  history.replaceState(null, "", kept.length ? `?${new URLSearchParams(kept)}` : location.pathname);
  shown();
  latest++; // what is still being drawn for the question before ends here
  clearTimeout(timer);
  timer = setTimeout(() => { due = latest; follow(); }, pause);
}

// One question at a time: of those that a slider passes meanwhile only the last is asked.
async function follow() {
  if (asking) return;
  asking = true;
  for (let asked; asked !== due; ) {
    asked = due;
    await answer();
  }
  asking = false;
}

function fromAddress() {
  const strange = [];
  for (const [name, value] of new URLSearchParams(location.search))
    if (name in controls && value.length <= 200) state[name] = value;
    else strange.push(name.slice(0, 40));
  for (const [name, value] of Object.entries(EXAMPLE)) state[name] ??= value;
  return strange.length ? `Left out of the address, which llmfeas does not know: ${strange.join(", ")}. ` : "";
}

function asked() {
  const settings = table.settings.filter((setting) => state[setting.name] && matters(setting));
  return Object.fromEntries(settings.map(({ name }) => [name, state[name]]));
}

// ---- the answer

const narrow = () => $("answer").clientWidth < 520; // pictures are drawn for it

async function answer(before = "") {
  const mine = latest, settings = asked();
  $("answer").classList.add("old");
  const found = await ask("answered", settings, narrow());
  if (mine !== latest) return;
  $("answer").classList.remove("old");
  for (const id of ["curve", "beside"]) $(id).replaceChildren();
  $("ways").hidden = true;
  if (found.error) return refused(found.error, before);
  const { html, json, command, title, status, values } = found.result;
  say(before);
  $("answer").innerHTML = html;
  $("json").textContent = json;
  $("command").textContent = command.replace(/\/dropped\/\d+\//g, "./");
  $("same").hidden = false;
  document.title = `${title} – llmfeas`;
  for (const [name, value] of Object.entries(values))
    if (controls[name]?.control.range && value) controls[name].control.range.value = String(Math.round(Math.log2(value)));
  await more(mine, settings, status);
}

async function more(mine, settings, status) {
  if (state.beside) {
    const found = await ask("beside", settings, state.beside);
    if (mine !== latest) return;
    if (found.error) say(found.error.message, true);
    else $("beside").innerHTML = found.result.html.replace(/<(\/?)h1>/g, "<$1h2>");
  }
  if (status !== "feasible") await offer(mine, settings);
  for (const what of table.curves) {
    if (mine !== latest) return; // one at a time, so that the next question does not wait for all of them
    const curve = await ask("curves", settings, what, narrow());
    if (mine === latest) $("curve").insertAdjacentHTML("beforeend", curve.result ?? "");
  }
}

async function offer(mine, settings) {
  const { result } = await ask("ways", settings);
  if (mine !== latest || !result) return;
  const none = element("li", {}, "None was found.");
  $("ways").querySelector("ul").replaceChildren(...(result.length ? result.map(way) : [none]));
  $("ways").hidden = false;
}

function way({ flags, settings, message }) {
  const button = element("button", { type: "button" }, flags);
  button.addEventListener("click", () => {
    for (const [name, value] of Object.entries(settings))
      if (value === "auto") delete state[name];
      else state[name] = value;
    changed();
    $("state").scrollIntoView({ block: "nearest" });
  });
  return element("li", {}, button, ` ${message}`);
}

function refused({ message, hint, candidates }, before) {
  say(`${before}${message} ${hint}`, true);
  $("answer").replaceChildren();
  $("same").hidden = true;
  const wrong = ["model", "device"].find((name) => message.includes(name));
  if (!wrong || !candidates.length) return;
  const list = candidates.map((candidate) => {
    const button = element("button", { type: "button" }, candidate);
    button.addEventListener("click", () => set(wrong, candidate));
    return element("li", {}, button);
  });
  $("answer").append(element("p", {}, "Perhaps:"), element("ul", {}, ...list));
}

async function drop(file) {
  const { result } = await send({ file });
  set("model", result);
}

// ---- the page

function copier(id, text) {
  $(id).addEventListener("click", async () => {
    await navigator.clipboard.writeText(text());
    const was = $(id).textContent;
    $(id).textContent = "Copied";
    setTimeout(() => ($(id).textContent = was), 1200);
  });
}

async function begin() {
  if (typeof WebAssembly !== "object" || typeof Worker !== "function")
    return say("This browser has no WebAssembly, in which the page computes. On the command line: llmfeas estimate -m gpt2-xl -d rtx-4070ti", true);
  say("Loading Python, some 13 MB the first time …");
  navigator.serviceWorker?.register("offline.js");
  worker = new Worker("worker.js", { type: "module" });
  worker.onmessage = ({ data }) => {
    if (data.failed) return say(`The runtime could not be loaded (${data.failed}). Reload, or take the command line.`, true);
    if (data.ready) return;
    const [resolve] = waiting.get(data.id);
    waiting.delete(data.id);
    resolve(JSON.parse(data.text));
  };
  worker.onerror = (event) => say(`The calculator stopped (${event.message}). Reload the page.`, true);
  table = (await ask("start")).result;
  document.head.append(element("style", {}, table.style.replace(/body\{[^}]*\}/, "")));
  form();
  const before = fromAddress();
  shown();
  for (const [id, text] of [["copy-command", () => $("command").textContent], ["copy-json", () => $("json").textContent], ["copy-link", () => location.href]]) copier(id, text);
  for (const kind of ["dragover", "drop", "dragleave"])
    document.addEventListener(kind, (event) => {
      event.preventDefault();
      document.body.classList.toggle("dropping", kind === "dragover");
      if (kind === "drop" && event.dataTransfer.files[0]) drop(event.dataTransfer.files[0]);
    });
  await answer(before);
}

begin();
