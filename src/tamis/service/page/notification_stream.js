// The notifications of this key: those that are there, then the new ones, through every break.

import { listNotifications, send } from "/page/api.js";
import { serverSent } from "/page/server_sent.js";

const MOST_KEPT = 300;
const PAGE = 30;
const SILENCE_MS = 45_000; // the service says something every 15 seconds
const LONGEST_WAIT_MS = 15_000;

class NotificationStream extends EventTarget {
  /** The newest first. */
  items = [];
  /** "off", "connecting", "live", "waiting" (for the next try) or "refused". */
  state = "off";
  /** How many came that nobody has looked at. */
  unseen = 0;
  /** `before` of the older ones; null if there are none. */
  older = null;
  problem = null;
  #last = null;
  #stopping = null;

  /** Begin, or go on after the last that was seen. */
  start() {
    if (this.#stopping) return;
    this.#stopping = new AbortController();
    this.#run(this.#stopping.signal);
  }

  /** Hold on; `start` misses nothing. */
  pause() {
    this.#stopping?.abort();
    this.#stopping = null;
    this.#tell("off");
  }

  /** End, and forget everything: the next key may be somebody else's. */
  stop() {
    this.pause();
    Object.assign(this, { items: [], unseen: 0, older: null, problem: null });
    this.#last = null;
  }

  see() {
    this.unseen = 0;
    this.dispatchEvent(new Event("change"));
  }

  async loadOlder() {
    const page = await listNotifications({ limit: PAGE, before: this.older });
    this.items.push(...page.items);
    this.older = page.next;
    this.dispatchEvent(new Event("change"));
    return page.items;
  }

  async #run(signal) {
    let wait = 500;
    while (!signal.aborted) {
      try {
        this.#tell("connecting");
        await this.#begin(signal);
        await this.#follow(signal, () => { wait = 500; });
      } catch (error) {
        if (signal.aborted) return;
        this.problem = error.message;
        if (error.status === 401 || error.status === 403) return this.#tell("refused");
      }
      if (signal.aborted) return;
      this.#tell("waiting");
      await new Promise((resolve) => setTimeout(resolve, wait));
      wait = Math.min(wait * 2, LONGEST_WAIT_MS);
    }
  }

  async #begin(signal) {
    if (this.#last !== null) return;
    const page = await listNotifications({ limit: PAGE });
    if (signal.aborted) return;
    this.items = page.items;
    this.older = page.next;
    this.#last = page.items[0]?.number ?? 0;
  }

  async #follow(signal, onlive) {
    // A connection that died without a word is given up after a silence.
    const giveUp = new AbortController();
    const either = AbortSignal.any([signal, giveUp.signal]);
    let timer = 0;
    const wake = () => {
      clearTimeout(timer);
      timer = setTimeout(() => giveUp.abort(), SILENCE_MS);
    };
    try {
      wake();
      const more = { "Last-Event-ID": String(this.#last), Accept: "text/event-stream" };
      const response = await send("GET", "/v1/notifications/stream", { more, signal: either });
      onlive();
      this.#tell("live");
      for await (const one of serverSent(response.body, wake)) {
        if (signal.aborted) return;
        if (one.event === "notification") this.#take(JSON.parse(one.data));
      }
    } finally {
      clearTimeout(timer);
      giveUp.abort();
    }
  }

  #take(notification) {
    this.#last = notification.number;
    this.items.unshift(notification);
    if (this.items.length > MOST_KEPT) {
      this.items.length = MOST_KEPT;
      this.older = this.items.at(-1).number;
    }
    this.unseen += 1;
    this.dispatchEvent(new CustomEvent("arrival", { detail: notification }));
    this.dispatchEvent(new Event("change"));
  }

  #tell(state) {
    this.state = state;
    if (state === "live") this.problem = null;
    this.dispatchEvent(new Event("change"));
  }
}

export const notificationStream = new NotificationStream();
