// The form of delivery settings: when, how much, and where to.

import { field, h } from "/page/elements.js";

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
const SCHEDULES = ["immediate", "every 15 minutes", "every hour", `daily at 09:00 ${zone}`];
const CAPS = ["10 per hour", "1 per 15 minutes", "50 per day"];
const APART = { mail: /[,\s]+/, apprise: /\s+/ }; // an address of Apprise may hold commas
const NAMES = ["schedule", "max_digest", "rate_cap", "webhook", ...Object.keys(APART)];

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
    webhook: text({ type: "url", inputmode: "url", placeholder: "https://…" }),
    mail: text({ inputmode: "email", placeholder: "zoe@example.org" }),
    apprise: text({ placeholder: "slack://…" }),
  };

  return {
    element: h("div", { class: "fields" },
      field("When", inputs.schedule, "every 15 minutes, daily at 09:00"),
      field("At most", inputs.rate_cap, "as in 10 per hour; the rest is counted"),
      field("Matches in one message", inputs.max_digest),
      field("Webhook", inputs.webhook),
      field("Mail", inputs.mail, "several with commas"),
      field("Chat (Apprise)", inputs.apprise, "several with spaces"),
      suggestions("schedules", SCHEDULES), suggestions("caps", CAPS)),

    read() {
      const made = {};
      for (const name of NAMES) {
        const said = inputs[name].value.trim();
        if (!said) continue;
        if (name === "max_digest") made[name] = Number(said);
        else if (name in APART) made[name] = listed(said, APART[name]);
        else made[name] = said;
      }
      return made;
    },

    write(delivery) {
      for (const name of NAMES) {
        inputs[name].value = [delivery[name] ?? ""].flat().join(name === "mail" ? ", " : " ");
      }
    },
  };
}

function listed(text, apart) {
  const found = text.split(apart).filter(Boolean);
  return found.length === 1 ? found[0] : found;
}
