// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// The status page: asks the API every other second and updates what stands there in place, so
// that nobody loses the focus. Whatever comes from the API is set as text, never as HTML.
"use strict";

const interval = 2000; // milliseconds between two questions
const history = 60; // rates in a chart
const levels = ["", "trace", "debug", "info", "warn", "error", "off"];

const $ = (selector, within = document) => within.querySelector(selector);
const cards = new Map(); // by type and key
const idOf = (c) => `${c.connector_type} ${c.key}`;
const pathOf = (c) => `${c.connector_type}s/${encodeURIComponent(c.key)}`;

// The key lives as long as the tab.
let apiKey = sessionStorage.getItem("api-key") ?? "";

class Failure extends Error {
  constructor(status, reason) {
    super(reason);
    this.status = status;
  }
}

async function call(method, path, body) {
  const headers = {};
  if (apiKey) headers["api-key"] = apiKey;
  if (body !== undefined) headers["content-type"] = "application/json";
  const response = await fetch(path, { method, headers, body: JSON.stringify(body) });
  if (response.ok) return response.status === 204 ? null : response.json();
  const failure = await response.json().catch(() => ({}));
  throw new Failure(response.status, failure.reason ?? `${response.status} ${response.statusText}`);
}

// say tells what happened, to screen readers as well.
function say(text) {
  if ($("#message").textContent !== text) $("#message").textContent = text;
}

function setText(element, text) {
  if (element.textContent !== String(text)) element.textContent = text;
}

const number = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

function duration(seconds) {
  if (seconds >= 1) return `${number.format(seconds)} s`;
  if (seconds >= 1e-3) return `${number.format(seconds * 1e3)} ms`;
  return `${number.format(seconds * 1e6)} µs`;
}

// Card shows one connector.
class Card {
  constructor(connector) {
    this.element = $("#connector").content.cloneNode(true).firstElementChild;
    this.rates = [];
    this.path = pathOf(connector);
    this.title = `${connector.connector_type} ${connector.key}`;
    this.element.setAttribute("aria-label", this.title);
    $("h2", this.element).textContent = connector.name || connector.key;
    $(".kind", this.element).textContent = this.title;
    $(".actions", this.element).setAttribute("aria-label", `Actions on ${this.title}`);
    this.buttons = Object.fromEntries(
      ["restart", "stop", "start", "pause", "resume"].map((action) => [action, this.button(action)]),
    );
    this.level = $(".level select", this.element);
    this.level.append(...levels.map((level) => new Option(level || "by filter", level)));
    this.level.addEventListener("change", () =>
      this.act("log level", () => call("PUT", `${this.path}/log-level`, { level: this.level.value || null })),
    );
  }

  button(action) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = action[0].toUpperCase() + action.slice(1);
    button.dataset.action = action;
    button.setAttribute("aria-label", `${button.textContent} ${this.title}`);
    button.addEventListener("click", () => this.act(action, () => call("POST", `${this.path}/${action}`)));
    $(".actions", this.element).append(button);
    return button;
  }

  async act(what, request) {
    say(`${this.title}: ${what} …`);
    try {
      await request();
      say(`${this.title}: ${what} done`);
    } catch (error) {
      say(`${this.title}: ${what} failed: ${error.message}`);
      if (error.status === 401) askForKey();
    }
    refresh();
  }

  update(connector, timestamp) {
    this.showStatus(connector);
    this.showActivity(connector.activity, timestamp);
    if (document.activeElement !== this.level) this.level.value = connector.log_level;
  }

  showStatus(connector) {
    const { status, paused, enabled, last_error: failure } = connector;
    const shown = paused ? "paused" : status === "stopped" && !enabled ? "disabled" : status;
    const element = $(".status", this.element);
    element.dataset.status = status;
    setText(element, shown);
    if (this.shown && this.shown !== shown) say(`${this.title} is ${shown}`);
    this.shown = shown;

    const error = $(".error", this.element);
    error.hidden = !failure;
    setText(error, failure ? `${failure.message} (${new Date(failure.timestamp / 1000).toLocaleTimeString()})` : "");

    const stopped = status === "stopped" || status === "stopping";
    this.allow({ restart: true, stop: !stopped || paused, start: stopped || status === "error", pause: !stopped, resume: paused });
  }

  // allow hides what makes no sense now. The focus moves on to a neighbour of what it was on.
  allow(allowed) {
    const focused = document.activeElement;
    for (const [action, button] of Object.entries(this.buttons)) button.hidden = !allowed[action];
    if (focused?.hidden && focused.closest("article") === this.element) this.buttons.restart.focus();
  }

  showActivity(activity, timestamp) {
    const before = this.activity;
    const seconds = before ? (timestamp - this.timestamp) / 1e6 : 0;
    this.activity = activity;
    this.timestamp = timestamp;
    setText($(".lag", this.element), compact.format(activity.lag));
    setText($(".moved", this.element), compact.format(activity.messages_out));
    setText($(".filtered", this.element), compact.format(activity.filtered));
    setText($(".errors", this.element), compact.format(activity.errors));
    if (seconds <= 0) return;
    const rate = Math.max(0, activity.messages_out - before.messages_out) / seconds;
    setText($(".rate", this.element), compact.format(rate));
    this.showRates(rate);
    this.showStages(activity.stages, before.stages);
  }

  showRates(rate) {
    this.rates = [...this.rates, rate].slice(-history);
    const highest = Math.max(1, ...this.rates);
    const offset = history - this.rates.length;
    const points = this.rates.map((r, i) => `${((offset + i) * 120) / (history - 1)},${31 - (r / highest) * 30}`);
    const chart = $(".rates", this.element);
    $("polyline", chart).setAttribute("points", points.join(" "));
    chart.setAttribute("aria-label",
      `Messages per second in the last ${Math.round((history * interval) / 60000)} minutes: now ${compact.format(rate)}, at most ${compact.format(highest)}`);
  }

  // showStages shows the mean of the batches since the last question; without any it keeps what it shows.
  showStages(stages, before) {
    const times = stages.map((stage, i) => {
      const batches = stage.batches - before[i].batches;
      return { name: stage.stage, mean: batches > 0 ? (stage.seconds - before[i].seconds) / batches : null };
    });
    const total = times.find((t) => t.name === "total")?.mean;
    if (!total) return;
    const body = $(".stages tbody", this.element);
    while (body.rows.length < times.length) body.append(stageRow());
    times.forEach(({ name, mean }, i) => {
      const [title, bar, value] = body.rows[i].cells;
      setText(title, name.replace("_", " "));
      bar.firstElementChild.style.width = `${Math.min(100, ((mean ?? 0) / total) * 100)}%`;
      setText(value, mean === null ? "–" : duration(mean));
    });
  }
}

function stageRow() {
  const row = document.createElement("tr");
  const title = document.createElement("th");
  title.scope = "row";
  const bar = document.createElement("td");
  bar.setAttribute("aria-hidden", "true");
  const share = document.createElement("span");
  share.className = "share";
  bar.append(share);
  row.append(title, bar, document.createElement("td"));
  return row;
}

function show(data) {
  setText($("#version"), data.version);
  const running = data.connectors.filter((c) => c.status === "running").length;
  const failed = data.connectors.filter((c) => c.status === "error").length;
  setText($("#summary"), `${data.connectors.length} connectors, ${running} running, ${failed} in error`);
  const present = new Set(data.connectors.map(idOf));
  for (const [id, card] of cards) {
    if (present.has(id)) continue;
    card.element.remove();
    cards.delete(id);
  }
  for (const connector of data.connectors) {
    let card = cards.get(idOf(connector));
    if (!card) {
      card = new Card(connector);
      cards.set(idOf(connector), card);
      $("#connectors").append(card.element);
      $("#log-of").append(new Option(idOf(connector), JSON.stringify([connector.connector_type, connector.key])));
    }
    card.update(connector, data.timestamp);
  }
}

function showLog(lines) {
  const log = $("#log");
  const atEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
  log.replaceChildren(
    ...lines.map((line) => {
      const item = document.createElement("li");
      item.className = line.level;
      const of = line.connector_key ? ` [${line.connector_type} ${line.connector_key}]` : "";
      item.textContent = `${new Date(line.timestamp / 1000).toISOString()} ${line.level}${of} ${line.text}`;
      return item;
    }),
  );
  if (atEnd) log.scrollTop = log.scrollHeight;
}

function logPath() {
  const query = new URLSearchParams({ limit: "200" });
  const of = $("#log-of").value;
  if (of) {
    const [type, key] = JSON.parse(of);
    query.set("connector_type", type);
    query.set("connector_key", key);
  }
  return `logs?${query}`;
}

function askForKey() {
  if (!$("#login").hidden) return;
  $("#login").hidden = false;
  say(apiKey ? "The API key is not accepted." : "Enter the API key to see the connectors.");
  $("#key").focus();
}

let timer;
let failing = false;

async function refresh() {
  clearTimeout(timer);
  try {
    const [data, lines] = await Promise.all([call("GET", "ui/data"), call("GET", logPath())]);
    show(data);
    showLog(lines);
    $("#login").hidden = true;
    if (failing) say("The runtime answers again.");
    failing = false;
  } catch (error) {
    if (error.status === 401) return askForKey(); // asking on would only be refused
    failing = true;
    say(error.status ? error.message : "The runtime does not answer.");
  }
  clearTimeout(timer);
  if (!document.hidden) timer = setTimeout(refresh, interval);
}

$("#login").addEventListener("submit", (event) => {
  event.preventDefault();
  apiKey = $("#key").value;
  sessionStorage.setItem("api-key", apiKey);
  $("#key").value = "";
  $("#login").hidden = true;
  refresh();
});
$("#log-of").addEventListener("change", refresh);
document.addEventListener("visibilitychange", () => document.hidden || refresh());
refresh();
