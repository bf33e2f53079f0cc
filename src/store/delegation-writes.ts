/** Writes that move children and money between a parent and a child: delegate, settle, lend, take, raise, give back. */
import { type Amount, add, isZero, sub, times, ZERO } from '../domain/money.ts'
import type { SessionRef } from '../domain/run.ts'
import type { SessionHeader } from '../domain/session.ts'
import type { Settlement, Store, Written } from '../ports.ts'
import { decodeHeader, encodeDelegation, encodeSeen, kidsAttributes } from './header-codec.ts'
import { sessionKey } from './keys.ts'
import { all, type Clauses, type Extras, LIVE, updateItem } from './statements.ts'
import { AMOUNT, DELEG } from './table.ts'
import type { Attribute, TableClient } from './table-client.ts'
import { encodeAmount } from './value-codecs.ts'

type DelegationWrites = Pick<
  Store,
  'delegate' | 'settle' | 'lend' | 'takeLoan' | 'raiseOwn' | 'need' | 'giveBack' | 'takeBack' | 'takeLimit'
>

/** A pair of attributes that hold one amount: they are compared and moved together. */
type Pot = 'own' | 'avail' | 'taken' | 'given'
const covers = (pot: Pot, value: string): string => all(`#${pot}Usd >= :${value}Usd`, `#${pot}Tok >= :${value}Tok`)
const equals = (pot: Pot, value: string): string => all(`#${pot}Usd = :${value}Usd`, `#${pot}Tok = :${value}Tok`)
const more = (pot: Pot, value: string): string[] => [
  `#${pot}Usd = #${pot}Usd + :${value}Usd`,
  `#${pot}Tok = #${pot}Tok + :${value}Tok`,
]
const less = (pot: Pot, value: string): string[] => [
  `#${pot}Usd = #${pot}Usd - :${value}Usd`,
  `#${pot}Tok = #${pot}Tok - :${value}Tok`,
]
const becomes = (pot: Pot, value: string): string[] => [`#${pot}Usd = :${value}Usd`, `#${pot}Tok = :${value}Tok`]
const pair = (value: string, amount: Amount): { [placeholder: string]: Attribute } => ({
  [`:${value}Usd`]: amount.usd,
  [`:${value}Tok`]: amount.tok,
})

/**
 * What the parent has lent to the child is what was read. The two numbers are compared, not the map that holds them: the
 * embedded emulator finds no two maps equal.
 */
const lentIs = (lent: Amount | null): string =>
  lent
    ? all('#lent.#ordinal.#usd = :lentUsd', '#lent.#ordinal.#tok = :lentTok')
    : 'attribute_not_exists(#lent.#ordinal)'
/** The same of what it has taken back from the child. */
const returnedIs = (returned: Amount | null): string =>
  returned
    ? all('#returned.#ordinal.#usd = :returnedUsd', '#returned.#ordinal.#tok = :returnedTok')
    : 'attribute_not_exists(#returned.#ordinal)'
const childNames = (ordinal: number, ...amounts: readonly (Amount | null)[]) => ({
  '#ordinal': String(ordinal),
  ...(amounts.some((a) => a !== null) && { '#usd': AMOUNT.usd, '#tok': AMOUNT.tok }),
})

export function delegationWrites(table: TableClient): DelegationWrites {
  const update = (
    ref: SessionRef,
    condition: string,
    clauses: Clauses,
    extras: Extras,
  ): Promise<Written<SessionHeader>> => updateItem(table, sessionKey(ref), condition, clauses, extras, decodeHeader)

  return {
    /**
     * W11. Ordinals and money leave in one write. The watermark `next` fences repeats for ever, where `pending` would
     * forget what has settled; `deleg` says what was decided, for whoever has to do the rest.
     */
    delegate: (ref, to): Promise<Written<SessionHeader>> =>
      update(
        ref,
        all(
          '#next = :from',
          '#deleg.#turn < :turn',
          // where nothing is given, what there is need not cover it: it may be less than nothing, after a limit was lowered
          !isZero(times(to.share, to.funded)) && covers('avail', 'sum'),
          '#status = :running',
          '#round = :round',
          'attribute_not_exists(#stop)',
        ),
        {
          set: ['#next = :next', ...less('avail', 'sum'), '#deleg = :deleg', '#updatedAt = :now'],
          add: [...(to.count > 0 ? ['#pending :ordinals'] : []), ...(to.needs?.length ? ['#needs :needs'] : [])],
        },
        {
          names: { '#turn': DELEG.turn },
          values: {
            ...pair('sum', times(to.share, to.funded)),
            ':from': to.from,
            ':round': to.round,
            ':next': to.from + to.count,
            ':turn': to.turn,
            ':deleg': encodeDelegation(to),
            ':ordinals': to.count > 0 ? new Set(Array.from({ length: to.count }, (_, i) => to.from + i)) : undefined,
            ':needs': to.needs?.length ? new Set(to.needs) : undefined,
            ':now': to.now,
          },
        },
      ),

    /**
     * W16. The parent gives up the ordinal and takes totals, change and version in one write: it happens once or not at
     * all, also when an SDK repeats it after a lost answer. Totals are flat numbers that are added to, so that nothing of
     * the parent must be read for it; those that do not change are left out of the write.
     */
    settle(parent: SessionRef, s: Settlement, now: number): Promise<Written<SessionHeader>> {
      const kids = Object.entries(kidsAttributes(s.books))
      const names = Object.fromEntries(kids.map(([name]) => [`#${name}`, name]))
      return update(
        parent,
        all('contains(#pending, :ordinal)', lentIs(s.lent), returnedIs(s.returned ?? null)),
        {
          set: [
            ...more('avail', 'back'),
            '#settled = #settled + :one',
            '#v = #v + :one',
            '#updatedAt = :now',
            ...(s.seen ? ['#seen.#ordinal = :seen'] : []),
          ],
          remove: [...(s.lent ? ['#lent.#ordinal'] : []), ...(s.returned ? ['#returned.#ordinal'] : [])],
          add: ['#kidsSessions :sessions', ...kids.map(([name]) => `#${name} :${name}`)],
          delete: ['#pending', '#waitingOn', '#needs', '#wants'].map((set) => `${set} :ordinals`),
        },
        {
          names: { ...names, ...childNames(s.ordinal, s.lent, s.returned ?? null) },
          values: {
            ':ordinal': s.ordinal,
            ':ordinals': new Set([s.ordinal]),
            ...(s.lent && pair('lent', s.lent)),
            ...(s.returned && pair('returned', s.returned)),
            ...pair('back', s.back),
            ':seen': s.seen ? encodeSeen(s.seen) : undefined,
            ':sessions': s.sessions,
            ...Object.fromEntries(kids.map(([name, value]) => [`:${name}`, value])),
            ':now': now,
          },
        },
      )
    },

    /**
     * W18. With `place` the child leaves those that are held back for want of money: then it is bound to the parent as it
     * was read, because whoever else leaves them takes a place and money too.
     */
    lend(parent, ordinal, seenLent, extra, place): Promise<Written<SessionHeader>> {
      const lent = seenLent ? add(seenLent, extra) : extra
      return update(
        parent,
        all(
          'contains(#pending, :ordinal)',
          covers('avail', 'extra'),
          lentIs(seenLent),
          ...(place
            ? ['contains(#needs, :ordinal)', equals('avail', 'seen'), '#next = :next', '#attempt = :attempt']
            : []),
        ),
        {
          set: ['#lent.#ordinal = :new', ...less('avail', 'extra')],
          delete: place ? ['#needs :ordinals'] : [],
        },
        {
          names: childNames(ordinal, seenLent),
          values: {
            ':ordinal': ordinal,
            ...pair('extra', extra),
            ...(seenLent && pair('lent', seenLent)),
            ':new': encodeAmount(lent),
            ...(place && {
              ...pair('seen', place.avail),
              ':next': place.next,
              ':attempt': place.attempt,
              ':ordinals': new Set([ordinal]),
            }),
          },
        },
      )
    },

    /** W19 */
    takeLoan: (
      ref: SessionRef,
      seenTaken: Amount,
      lent: Amount,
      into: 'own' | 'avail',
    ): Promise<Written<SessionHeader>> =>
      update(
        ref,
        all(equals('taken', 'seen'), LIVE),
        { set: [...more(into, 'extra'), ...becomes('taken', 'lent')] },
        { values: { ...pair('seen', seenTaken), ...pair('lent', lent), ...pair('extra', sub(lent, seenTaken)) } },
      ),

    /** W20 */
    raiseOwn: (ref: SessionRef, seenOwn: Amount, extra: Amount): Promise<Written<SessionHeader>> =>
      update(
        ref,
        all(equals('own', 'seen'), covers('avail', 'extra'), '#status = :running'),
        { set: [...more('own', 'extra'), ...less('avail', 'extra')] },
        { values: { ...pair('seen', seenOwn), ...pair('extra', extra) } },
      ),

    /** W36 */
    need: (parent, ordinal, into): Promise<Written<SessionHeader>> =>
      update(
        parent,
        'contains(#pending, :ordinal)',
        { add: [`#${into} :ordinals`] },
        { values: { ':ordinal': ordinal, ':ordinals': new Set([ordinal]) } },
      ),

    /** W37. By comparison: the sum of all that was given back is written, so that the parent can take it in at any time. */
    giveBack(ref, from): Promise<Written<SessionHeader>> {
      // whoever is about to claim it has counted on its money, so it is claimed as far as he is concerned
      const unclaimed = from.own?.attempt === 0
      return update(
        ref,
        all(
          isZero(from.seenGiven) ? 'attribute_not_exists(#givenUsd)' : equals('given', 'seen'),
          ...(isZero(from.avail) ? [] : [covers('avail', 'less')]),
          ...(from.own
            ? [equals('own', 'seenOwn'), `#status = ${unclaimed ? ':queued' : ':running'}`, '#attempt = :mine']
            : [LIVE]),
        ),
        {
          set: [
            ...becomes('given', 'given'),
            ...(isZero(from.avail) ? [] : less('avail', 'less')),
            ...(from.own ? becomes('own', 'own') : []),
            ...(unclaimed ? ['#attempt = :one'] : []),
          ],
        },
        {
          values: {
            ...(isZero(from.seenGiven) ? {} : pair('seen', from.seenGiven)),
            ...pair('given', from.given),
            ...(isZero(from.avail) ? {} : pair('less', from.avail)),
            ...(from.own && {
              ...pair('seenOwn', from.own.seen),
              ...pair('own', from.own.to),
              ':mine': from.own.attempt,
            }),
          },
        },
      )
    },

    /** W38 */
    takeBack: (parent, ordinal, seenReturned, given, needs): Promise<Written<SessionHeader>> =>
      update(
        parent,
        all('contains(#pending, :ordinal)', returnedIs(seenReturned)),
        { set: ['#returned.#ordinal = :new', ...more('avail', 'more')], add: needs ? ['#needs :ordinals'] : [] },
        {
          names: childNames(ordinal, seenReturned),
          values: {
            ':ordinal': ordinal,
            ...(seenReturned && pair('returned', seenReturned)),
            ':new': encodeAmount(given),
            ...pair('more', sub(given, seenReturned ?? ZERO)),
            ':ordinals': needs ? new Set([ordinal]) : undefined,
          },
        },
      ),

    /** W39. The root's share is the limit that it has taken in. */
    takeLimit: (root, seenSeq, to): Promise<Written<SessionHeader>> =>
      update(
        root,
        '#limitSeq = :seenSeq',
        {
          set: [
            '#limitSeq = :seq',
            '#shareUsd = :shareUsd',
            '#shareTok = :shareTok',
            ...more('avail', 'more'),
            '#updatedAt = :now',
          ],
        },
        {
          values: {
            ':seenSeq': seenSeq,
            ':seq': to.seq,
            ...pair('share', to.limit),
            ...pair('more', to.more),
            ':now': to.now,
          },
        },
      ),
  }
}
