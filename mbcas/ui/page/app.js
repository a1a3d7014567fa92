// The page of `mbcas ui`: puts the connection, the course of what was seen, and the views together.

import {LONGEST_NOTE, byId, setAttribute, setHidden, setText} from './dom.js';
import {ClusterView, nodeLink} from './cluster.js';
import {Course, Pictures, readState, recordingOf} from './course.js';
import {clock, duration} from './format.js';
import {NodeView, place} from './node.js';
import {PodView} from './pod.js';
import {PodTable} from './pods.js';
import {Refused, Stream, ask, openSession} from './stream.js';

const PLAY_PAUSE = 200; // ms for each state

const MOST_COURSES = 4;    // of nodes, live; a recording is bounded itself
const PODS_IN_LINE = 500;
const FOLLOW = 5000; // ms; mbcas ui forgets a node that is not asked for in 20 s

// Of a cluster a course for each node that was shown, the last one shown at the end.
const courses = new Map();
let course = new Course();
const pictures = new Pictures();
const page = {
  session: '',
  source: {},
  connection: 'connecting',
  status: {},
  follow: true, // the newest state is shown
  number: 0,    // the state that is shown
  playing: 0,
};

const MARKS = {
  connecting: ['◌', 'connecting'],
  live: ['●', 'live'],
  waiting: ['◐', 'the source does not answer; it is asked again'],
  over: ['■', 'complete'],
  lost: ['✕', 'no connection to mbcas ui; trying again'],
  refused: ['✕', 'this page belongs to an mbcas ui that has ended'],
};

let drawing = false;
function redraw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    draw();
  });
}

const nodeView = new NodeView(question => ask(page.session, '/api/what-if', question), redraw);
const askPods = question => ask(page.session, '/api/pods', question);
const clusterView = new ClusterView(redraw, askPods);
const podTable = new PodTable(askPods, redraw);
const podView = new PodView(
    (state, pod) => ask(page.session, '/api/explain',
        {...pod, node: state.node, time: state.time, market: state.market}),
    number => show(number));

// What the address asks for: {node, pod}, each null where it is not chosen. A pod is
// "namespace/name". Only of a cluster a node has a name.
function route() {
  const found = /^#(?:\/node\/([^/]+))?(?:\/pod\/(.+))?$/.exec(location.hash);
  const read = text => {
    try {
      return text ? decodeURIComponent(text) : null;
    } catch {
      return null;
    }
  };
  return {node: read(found?.[1]), pod: read(found?.[2])};
}

const ofCluster = () => page.source.cluster === true;
// All of it has come, or comes by itself.
const isRecorded = () => page.source.kind === 'recording';
// Nothing newer is going to come.
const isOver = () => page.status.state === 'over';
// Of what is shown: of the node, or of the whole cluster.
const timeline = () => (ofCluster() && place.node === '' ? pictures : course);

function courseOf(node) {
  let found = courses.get(node);
  if (!found) courses.set(node, found = new Course());
  return found;
}

// The course of the node that is shown, of which there may be nothing yet.
function chooseCourse(node) {
  if (place.node === node) return;
  place.node = node;
  if (node !== '') {
    course = courseOf(node);
    courses.delete(node);
    courses.set(node, course);
    while (!isRecorded() && courses.size > MOST_COURSES) courses.delete(courses.keys().next().value);
  }
  stopPlaying();
  page.follow = true;
  tellNode();
}

// The server follows only the nodes that are shown.
async function tellNode() {
  if (!ofCluster() || !place.node || !page.session || page.connection !== 'live') return;
  if (course.states.length === 0) podTable.ask(place.node);
  if (isRecorded()) return;
  try {
    await ask(page.session, '/api/follow', {node: place.node});
  } catch { /* It is told again soon. */ }
}

function draw() {
  const {node, pod: key} = route();
  if (ofCluster()) chooseCourse(node ?? '');
  drawStatus();
  drawTime();
  const wide = ofCluster() && place.node === '';
  const any = timeline().states.length > 0;
  setHidden(byId('cluster'), !wide || !any);
  setHidden(byId('node'), wide || !any || key !== null);
  setHidden(byId('pod'), wide || !any || key === null);
  const unseen = !wide && !any && ofCluster();
  setHidden(byId('plain'), !unseen);
  setHidden(document.querySelector('footer'), unseen);
  setHidden(byId('save'), unseen);
  setHidden(byId('message'), any);
  setHidden(byId('message-back'), !unseen);
  setHidden(byId('to-cluster'), !ofCluster());
  setAttribute(byId('home'), 'href', ofCluster() ? '#/cluster' : '#/node');
  setAttribute(byId('to-node'), 'href', ofCluster() ? nodeLink(node ?? '') : '#/node');
  let name = key ?? place.node;
  if (wide) {
    name = 'Cluster';
    const newest = page.follow && !isRecorded();
    const picture = pictures.get(page.number);
    if (picture) clusterView.draw(picture, newest ? Date.now() : picture.at);
  } else if (any) {
    const state = course.get(page.number);
    if (key === null) {
      nodeView.draw(state);
    } else {
      podView.draw(course, page.number, key);
    }
    name ||= state.data.node;
  } else if (unseen) {
    drawUnseen(node, key);
  }
  const title = `${(name || 'node').slice(0, 100)} – MBCAS`;
  if (document.title !== title) document.title = title;
}

// A node about which no agent tells anything: what there is without it, and what is missing.
function drawUnseen(node, key) {
  podTable.draw(node, key);
  const notes = pictures.states.at(-1)?.notes ?? [];
  let text = notes.length ? notes.join(' ') : `Waiting for what the agent of ${node} sees…`;
  if (isRecorded()) text = 'Nothing of this node was recorded but its PodAllocations.';
  if (isRecorded() || page.connection === 'live') setText(byId('message-text'), text, LONGEST_NOTE);
}

function drawStatus() {
  const kind = page.connection === 'live' ? page.status.state ?? 'live' : page.connection;
  const [mark, text] = MARKS[kind] ?? MARKS.live;
  setAttribute(byId('status'), 'data-state', kind);
  setText(byId('status-mark'), mark);
  const detail = page.connection === 'live' ? page.status.text : '';
  setText(byId('status-text'), detail ? `${text} (${detail})` : text);
  setText(byId('title'), page.source.title ?? '');
  setText(byId('kind'), page.source.kind ?? '');
  setHidden(byId('kind'), !page.source.kind);
  setText(byId('detail'), page.source.detail ?? '');
}

function drawTime() {
  const line = timeline();
  const many = line.states.length;
  if (page.follow) page.number = line.last;
  page.number = Math.min(Math.max(page.number, line.first), Math.max(line.last, line.first));
  const scrubber = byId('scrubber');
  scrubber.disabled = many < 2;
  scrubber.max = Math.max(many - 1, 0);
  scrubber.value = page.number - line.first;
  byId('save').disabled = many === 0;
  byId('play').disabled = many < 2;
  byId('newest').disabled = page.follow || many === 0;
  setText(byId('play'), page.follow && !isOver() || page.playing ? 'Pause' : 'Play');
  const state = line.get(page.number);
  if (!state) return setText(byId('moment'), '');
  const behind = line.states.at(-1).at - state.at;
  const where = page.follow ? 'the newest' : `${duration(behind)} before the newest`;
  setText(byId('moment'), `${clock(state.at)}, ${where}`);
  setAttribute(scrubber, 'aria-valuetext', `${clock(state.at)}, ${where}`);
}

function stopPlaying() {
  clearInterval(page.playing);
  page.playing = 0;
}

// Shows that moment, and stays there.
function show(number) {
  stopPlaying();
  page.follow = false;
  page.number = number;
  redraw();
}

function follow() {
  stopPlaying();
  page.follow = true;
  redraw();
}

function playOrPause() {
  if (page.follow && !isOver() || page.playing) return show(page.number);
  // At the end it begins again.
  if (page.number >= timeline().last) page.number = timeline().first;
  page.follow = false;
  page.playing = setInterval(() => {
    if (page.number >= timeline().last) return follow();
    ++page.number;
    redraw();
  }, PLAY_PAUSE);
  redraw();
}

// Of a cluster its pictures, its pods as they are now, and the nodes that were shown.
async function linesToSave() {
  if (!ofCluster() || place.node !== '') return course.lines();
  const lines = pictures.lines();
  const {pods} = await askPods({});
  for (let i = 0; i < pods.length; i += PODS_IN_LINE) {
    lines.push(JSON.stringify({clusterPods: pods.slice(i, i + PODS_IN_LINE)}));
  }
  for (const each of courses.values()) lines.push(...each.lines());
  return lines;
}

async function save() {
  const title = place.node || page.source.title || course.states.at(-1)?.data.node || 'node';
  const name = title.replace(/^https?:\/\//, '').replace(/[^\w.-]+/g, '-');
  byId('save').disabled = true;
  let text;
  try {
    text = recordingOf(title, await linesToSave());
  } catch {
    return redraw(); // Without a connection pods cannot be asked for.
  }
  const url = URL.createObjectURL(new Blob([text], {type: 'application/x-ndjson'}));
  const link = document.createElement('a');
  link.href = url;
  link.download = `${name.slice(0, 60)}.mbcas`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
  redraw();
}

function readEvent(name, data) {
  page.connection = 'live';
  if (name === 'frame') {
    const state = readState(data);
    // Of a cluster there may be nodes that only another page shows.
    const name = state?.data.node ?? '';
    const of = !ofCluster() ? course : isRecorded() ? courseOf(name) : courses.get(name);
    of?.add(state);
  } else {
    let value = {};
    try {
      value = JSON.parse(data);
    } catch { /* It says nothing then. */ }
    if (name === 'source') page.source = value;
    if (name === 'status') page.status = value;
    if (name === 'cluster') {
      pictures.add(value, value.time ? Date.parse(value.time) : Date.now(), isRecorded());
    }
  }
  redraw();
}

async function start() {
  byId('play').addEventListener('click', playOrPause);
  byId('newest').addEventListener('click', follow);
  setInterval(() => {
    tellNode();
    redraw(); // Durations go on, also where nothing else changes.
  }, FOLLOW);
  byId('save').addEventListener('click', save);
  byId('scrubber').addEventListener('input', event => show(timeline().first + Number(event.target.value)));
  addEventListener('hashchange', () => {
    // To a view that is another page for its reader.
    scrollTo(0, 0);
    redraw();
  });
  try {
    page.session = await openSession();
  } catch (error) {
    page.connection = 'refused';
    setText(byId('message-text'), error instanceof Refused ? error.message : 'mbcas ui does not answer.');
    MARKS.refused[1] = 'no access';
    return redraw();
  }
  await new Stream(page.session, {
    event: readEvent,
    lost: () => {
      page.connection = 'lost';
      redraw();
    },
    refused: () => {
      page.connection = 'refused';
      sessionStorage.clear();
      setText(byId('message-text'),
          'The mbcas ui that this page came from has ended. Start it again and open its new address.');
      redraw();
    },
  }).run();
}

start();
