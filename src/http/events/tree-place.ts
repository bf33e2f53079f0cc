import { childSessionId, rootSessionId } from '../../domain/ids.ts'
import { packCursor, unpackCursor } from '../cursor.ts'
import { type Place, startOf } from './session-events.ts'

/** More than any run has: whoever sends a cursor may have made it up. */
const MOST_LEVELS = 100
/** Sessions that a cursor speaks of at most, for the same reason: what it makes of them is kept while its reader waits. */
const MOST_SESSIONS = 100_000

/**
 * A session in the tree as a reader knows it: how many of its own events were told, and of its approvals. Of a followed
 * one, its place says so.
 */
export interface Node {
  /** null: a cursor speaks of it, and nobody has looked for it yet. To reckon it is the dear part */
  id: string | null
  readonly parent: Node | null
  readonly children: (Node | undefined)[]
  told: number
  /** events of approvals that were told */
  asked: number
  place?: Place
  /** its part of the cursor, until something below it changes */
  text?: string | undefined
}

/**
 * How far a reader has come in a whole run, as a cursor. The tree is written out in the order of its ordinals, a digit for
 * each session (how many of its events were told; behind it, where some were told, how many of its approvals) and brackets
 * around its children. Ids follow from the ordinals, so they
 * are not in it; deflated, what has ended takes next to nothing, and what is under way about two bits a session.
 */
export class TreePlace {
  readonly root: Node
  #sessions = 1
  readonly #nodes = new Map<string, Node>()
  readonly #watched: string | undefined
  /** what a cursor says of the watched session, until it is found in the tree */
  #watchedPlace: Place | undefined
  readonly #scope: string
  /** the first limit of the run, by its `budgetSeq`, of which no warning was told */
  #warned = 0

  /** @param watched the session whose log is followed beside the root's */
  constructor(runId: string, watched: string | undefined, scope: string) {
    this.root = { id: rootSessionId(runId), parent: null, children: [], told: 0, asked: 0, place: startOf(1) }
    this.#nodes.set(rootSessionId(runId), this.root)
    this.#watched = watched
    this.#scope = scope
  }

  get warned(): number {
    return this.#warned
  }

  /** It was told that most of this limit is spent. */
  tellWarning(budgetSeq: number): void {
    this.#warned = budgetSeq + 1
  }

  find(id: string): Node | undefined {
    return this.#nodes.get(id)
  }

  /** @param parent the root, or what this has given */
  child(parent: Node, ordinal: number): Node {
    const node = parent.children[ordinal] ?? this.#add(parent, ordinal)
    if (node.id !== null) return node
    node.id = childSessionId(parent.id!, ordinal)
    this.#nodes.set(node.id, node)
    if (node.id === this.#watched && this.#watchedPlace) {
      node.place = this.#watchedPlace
      touch(node)
    }
    return node
  }

  #add(parent: Node, ordinal: number): Node {
    const node: Node = { id: null, parent, children: [], told: 0, asked: 0 }
    for (let i = parent.children.length; i < ordinal; i++) parent.children[i] = undefined
    parent.children[ordinal] = node
    this.#sessions++
    touch(node)
    return node
  }

  /** One more event of a session was told. @param of an approval */
  tell(node: Node, place: Place | undefined, approval = false): void {
    if (place) node.place = place
    else {
      if (approval) node.asked++
      else node.told++
      touch(node)
    }
  }

  /** Undefined: more is under way at once than a cursor can say. */
  cursor(): string | undefined {
    if (this.#sessions > MOST_SESSIONS) return undefined
    const watched = this.#watched === undefined ? undefined : this.find(this.#watched)
    const places = [this.root.place, watched ? watched.place : this.#watchedPlace]
    const parts = [...places.map((p) => (p ? placeText(p) : '')), textOf(this.root), this.#warned]
    return packCursor(this.#scope, parts.join('|'))
  }

  /** @returns false: the cursor is broken, or was given for something else */
  goTo(cursor: string): boolean {
    const [root, watched, tree, warned, ...more] = unpackCursor(this.#scope, cursor)?.split('|') ?? []
    if (root === undefined || watched === undefined || tree === undefined || more.length > 0) return false
    if (warned === undefined || !/^\d{1,9}$/.test(warned)) return false
    this.#warned = Number(warned)
    const [place, watchedPlace] = [parsePlace(root), parsePlace(watched)]
    if (!place || (watched !== '' && (!watchedPlace || this.#watched === undefined))) return false
    this.#watchedPlace = watchedPlace
    this.root.place = place
    return this.#parse(tree)
  }

  /** `0(32:4;(3)1)`: the root's own digit, and its children's in brackets. */
  #parse(text: string): boolean {
    if (!/^0(?:\(.*\))?$/.test(text) || !/^(?:[()]|[0-3](?::\d{1,7};)?)*$/.test(text)) return false
    let at: Node | null = this.root
    let last: Node = this.root
    const counts: number[] = []
    for (const [c] of text.slice(1).matchAll(/:\d+;|./g)) {
      if (c === '(') {
        at = last
        counts.push(0)
        if (counts.length > MOST_LEVELS) return false
      } else if (c === ')') {
        if (counts.pop() === undefined || !at) return false
        last = at
        at = at.parent
      } else if (c.startsWith(':')) last.asked = Number(c.slice(1, -1))
      else {
        if (!at || counts.length === 0) return false
        if (this.#sessions === MOST_SESSIONS) return false
        last = this.#add(at, counts[counts.length - 1]!++)
        last.told = Number(c)
      }
    }
    return counts.length === 0
  }
}

function touch(node: Node): void {
  node.text = undefined
  // where one has no text, those above it have none either
  for (let n = node.parent; n?.text !== undefined; n = n.parent) n.text = undefined
}

function textOf(node: Node): string {
  if (node.text !== undefined) return node.text
  // children of which nothing was told yet need not be said at the end
  const children = Array.from(node.children, (c) => (c ? textOf(c) : '0'))
    .join('')
    .replace(/0+$/, '')
  // of one that has ended nothing more can come
  const asked = node.place || node.told > 2 || node.asked === 0 ? '' : `:${node.asked};`
  node.text = `${node.place ? 0 : node.told}${asked}${children === '' ? '' : `(${children})`}`
  return node.text
}

const placeText = (p: Place): string => [p.step, p.round, p.closed, p.n, p.told, p.answered, p.asked].join('.')

function parsePlace(text: string): Place | undefined {
  const m = /^([012])\.(\d{1,9})\.([01])\.(\d{1,6})\.(\d{1,6})\.(-1|\d{1,6})\.(\d{1,7})$/.exec(text)
  if (!m) return undefined
  const [step, round, closed, n, told, answered, asked] = m.slice(1).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
    number,
  ]
  return { step, round, closed, n, told, answered, asked }
}
