// The form of delivery settings: when, how much, and where to.

import { field, h } from "/page/elements.js";
import { TRANSPORTS } from "/page/transports.js";

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
const SCHEDULES = ["immediate", "every 15 minutes", "every hour", `daily at 09:00 ${zone}`];
const CAPS = ["10 per hour", "1 per 15 minutes", "50 per day"];
const PACE = ["schedule", "max_digest", "rate_cap"];

function suggestions(id, values) {
  return h("datalist", { id }, values.map((value) => h("option", { value })));
}

/** The form, what it says as delivery settings, and settings put into it. */
export function deliveryForm() {
  const text = (attributes) => h("input", { autocomplete: "off", spellcheck: "false", ...attributes });
  const inputs = {
    schedule: text({ list: "schedules", placeholder: "immediate" }),
    max_digest: text({ type: "number", min: 1, max: 1000, placeholder: "1000" }),
    rate_cap: text({ list: "caps", placeholder: "no cap" }),
  };
  for (const { name, type, inputmode, placeholder } of TRANSPORTS) {
    inputs[name] = text({ type, inputmode, placeholder });
  }

  return {
    element: h("div", { class: "fields" },
      field("When", inputs.schedule, "every 15 minutes, daily at 09:00"),
      field("At most", inputs.rate_cap, "as in 10 per hour; the rest is counted"),
      field("Matches in one message", inputs.max_digest),
      TRANSPORTS.map(({ name, label, hint }) => field(label, inputs[name], hint)),
      suggestions("schedules", SCHEDULES), suggestions("caps", CAPS)),

    read() {
      const made = {};
      for (const name of PACE) {
        const said = inputs[name].value.trim();
        if (said) made[name] = name === "max_digest" ? Number(said) : said;
      }
      for (const transport of TRANSPORTS) {
        const said = inputs[transport.name].value.trim();
        if (said) made[transport.name] = transport.takes_many ? listed(said, transport) : said;
      }
      return made;
    },

    write(delivery) {
      for (const name of PACE) inputs[name].value = delivery[name] ?? "";
      for (const { name, has_commas: hasCommas } of TRANSPORTS) {
        inputs[name].value = [delivery[name] ?? ""].flat().join(hasCommas ? ", " : " ");
      }
    },
  };
}

function listed(text, { has_commas: hasCommas }) {
  const found = text.split(hasCommas ? /[,\s]+/ : /\s+/).filter(Boolean);
  return found.length === 1 ? found[0] : found;
}
