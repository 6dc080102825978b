// Server-sent events from a body that fetch reads: EventSource cannot send a header with a key.

/** The lines of chunks of text, whichever way they end and wherever the chunks are cut. */
class Lines {
  #rest = "";

  take(chunk) {
    const text = this.#rest + chunk;
    // A CR at the very end may be half of CR LF.
    const end = text.endsWith("\r") ? text.length - 1 : text.length;
    const lines = text.slice(0, end).split(/\r\n|\n|\r/);
    this.#rest = lines.pop() + text.slice(end);
    return lines;
  }
}

/** The events of a body: `{id, event, data}` each; `onbytes` is called whenever something came. */
export async function* serverSent(body, onbytes) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  const lines = new Lines();
  let held = { event: "message", data: [] };
  while (true) {
    const { value, done } = await reader.read();
    if (done) return;
    onbytes();
    for (const line of lines.take(value)) {
      if (line === "") {
        if (held.data.length) yield { ...held, data: held.data.join("\n") };
        held = { event: "message", data: [] };
        continue;
      }
      const [, name, said] = /^([^:]*)(?:: ?(.*))?$/.exec(line);
      if (name === "data") held.data.push(said ?? "");
      else if (name === "id" || name === "event") held[name] = said ?? "";
    }
  }
}
