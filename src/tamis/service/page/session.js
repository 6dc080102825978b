// Whose page this is. The key is kept for this tab only, and leaves it only as a header.

const NAME = "tamis.key";

export const session = new (class extends EventTarget {
  /** What the service says of the key: owner, scopes, prefix; null before it was asked. */
  who = null;

  get key() {
    return sessionStorage.getItem(NAME);
  }

  begin(key, who) {
    sessionStorage.setItem(NAME, key);
    this.who = who;
  }

  /** Forget the key; `why` is told to who sees the form again. */
  end(why = null) {
    if (!this.key && !this.who) return;
    sessionStorage.removeItem(NAME);
    this.who = null;
    this.dispatchEvent(new CustomEvent("end", { detail: why }));
  }

  get isAdmin() {
    return Boolean(this.who?.scopes.includes("admin"));
  }

  get isSubscriber() {
    return this.isAdmin || Boolean(this.who?.scopes.includes("subscriber"));
  }
})();
