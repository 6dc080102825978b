// Requests to the service: the key as a header, errors as Problems.

import { session } from "/page/session.js";

/** An error that the service told (RFC 9457), or that it could not be reached (status 0). */
class Problem extends Error {
  constructor(status, told) {
    super(told.detail || told.title || `the service answered ${status}`);
    this.status = status;
    this.told = told;
  }
}

function headers(key, more) {
  // What is no header (a line break, a letter that is not Latin) cannot be a key either.
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw new Problem(401, { detail: "That is not a key: it has characters that no key has." });
  }
  return { Authorization: `Bearer ${key}`, ...more };
}

/** The response to a request; whatever is not 2xx or 304 is thrown as a Problem. */
export async function send(method, path, { body, more = {}, signal, key = session.key } = {}) {
  const options = {
    method, signal, headers: headers(key ?? "-", more), cache: "no-store", credentials: "omit", redirect: "error",
  };
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { detail: "The service does not answer. Is it running?" });
  }
  if (response.ok) return response;
  const told = await response.json().catch(() => ({}));
  const problem = new Problem(response.status, told);
  // Only a key that had counted: a wrong one in the form is told in the form.
  if (response.status === 401 && key === session.key) session.end(problem.message);
  throw problem;
}

/** The answer's JSON, or null where there is none. */
export async function call(method, path, options = {}) {
  const response = await send(method, path, options);
  return response.status === 204 ? null : response.json();
}

export const preview = (body, signal) => call("POST", "/v1/preview", { body, signal });
export const explain = (body) => call("POST", "/v1/explain", { body });

const subscription = (id) => `/v1/subscriptions/${encodeURIComponent(id)}`;
const only = (etag) => ({ "If-Match": `"${etag}"` });

export const readSubscription = (id) => call("GET", subscription(id));
export const createSubscription = (body, once) =>
  call("POST", "/v1/subscriptions", { body, more: { "Idempotency-Key": once } });
export const changeSubscription = (id, body, etag) =>
  call("PATCH", subscription(id), { body, more: only(etag) });
export const deleteSubscription = (id, etag) =>
  call("DELETE", subscription(id), { more: only(etag) });
export const listSubscriptions = (search, cursor, signal) =>
  call("GET", `/v1/subscriptions?${new URLSearchParams({ search, cursor: cursor ?? "", limit: 50 })}`, { signal });

export const listNotifications = (params) =>
  call("GET", `/v1/notifications?${new URLSearchParams(params)}`);

export const readOperations = (signal) => call("GET", "/v1/operations", { signal });
export const listDeadDeliveries = (cursor) =>
  call("GET", `/v1/deliveries?${new URLSearchParams({ state: "dead", limit: 50, ...(cursor ? { cursor } : {}) })}`);
export const replayDeliveries = (body) => call("POST", "/v1/deliveries/replay", { body });
