// The connection to the server: a session, a stream of events that comes back when it breaks, and
// questions.

const KEY = 'mbcas-session';
const LONGEST_WAIT = 5000;
// The server says at least so often that it is there.
const SILENCE = 30000;

export class Refused extends Error {}

// The session of this page: from the token in the address, which is good once, or from before a
// reload. The token does not stay in the address, where others could read it.
export async function openSession() {
  const token = location.hash.slice(1);
  if (!/^[0-9a-f]{64}$/.test(token)) {
    const kept = sessionStorage.getItem(KEY);
    if (kept) return kept;
    throw new Refused('This address is not complete. Open the whole one that the command printed.');
  }
  history.replaceState(null, '', '#/');
  const answer = await fetch('/api/session', {method: 'POST', body: token, cache: 'no-store'});
  if (!answer.ok) {
    throw new Refused('This address has been used before. The command has printed another one.');
  }
  const session = await answer.text();
  sessionStorage.setItem(KEY, session);
  return session;
}

export async function ask(session, path, question, signal) {
  const answer = await fetch(path, {
    method: 'POST', body: JSON.stringify(question), cache: 'no-store', signal,
    headers: {'Authorization': `Bearer ${session}`, 'Content-Type': 'application/json'},
  });
  if (!answer.ok) throw new Error((await answer.text()).trim());
  return answer.json();
}

// handlers: event(name, data), lost(milliseconds until the next try), refused()
export class Stream {
  constructor(session, handlers) {
    this.session = session;
    this.handlers = handlers;
    this.last = '';
    this.wait = 500;
  }

  async run() {
    while (true) {
      try {
        if (await this.follow() === 401) return this.handlers.refused();
      } catch { /* It is tried again in any case. */ }
      this.handlers.lost(this.wait);
      await new Promise(done => setTimeout(done, this.wait));
      this.wait = Math.min(this.wait * 2, LONGEST_WAIT);
    }
  }

  async follow() {
    const abort = new AbortController();
    let silent = setTimeout(() => abort.abort(), SILENCE);
    try {
      const answer = await fetch('/api/events', {
        cache: 'no-store', signal: abort.signal,
        headers: {'Authorization': `Bearer ${this.session}`, 'Last-Event-ID': this.last},
      });
      if (!answer.ok) return answer.status;
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = '';
      while (true) {
        const {value, done} = await reader.read();
        if (done) return 0;
        clearTimeout(silent);
        silent = setTimeout(() => abort.abort(), SILENCE);
        this.wait = 500;
        const events = (rest + value).split('\n\n');
        rest = events.pop();
        for (const event of events) this.take(event);
      }
    } finally {
      clearTimeout(silent);
    }
  }

  take(text) {
    let name = '';
    let data = '';
    for (const line of text.split('\n')) {
      if (line.startsWith('event: ')) name = line.slice(7);
      if (line.startsWith('data: ')) data = line.slice(6);
      if (line.startsWith('id: ')) this.last = line.slice(4);
    }
    if (name) this.handlers.event(name, data);
  }
}
