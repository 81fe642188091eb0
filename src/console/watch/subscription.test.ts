import { describe, expect, it } from 'vitest'
import { createObjectState } from './object-state.ts'
import { createSubscription } from './subscription.ts'
import type { WatchedCollection } from './watched-collection.ts'

/** A collection that the test changes directly. */
function createCollection() {
  const state = createObjectState()
  const subscribers: WatchedCollection['subscribers'] = new Set()
  let revision = 0
  let isListed = false
  return {
    state,
    subscribers,
    error: undefined,
    get revision() {
      return isListed ? String(revision) : undefined
    },
    run: async () => {},
    put(uid: string) {
      revision++
      const change = state.put(uid, { json: JSON.stringify({ uid, revision }), revision })
      if (change) for (const subscriber of subscribers) subscriber.onChange(uid, change)
    },
    remove(uid: string) {
      revision++
      state.delete(uid, { json: JSON.stringify({ uid }), revision })
      for (const subscriber of subscribers) subscriber.onChange(uid, 'DELETED')
    },
    setListed() {
      isListed = true
      state.setListed(revision)
      for (const subscriber of subscribers) subscriber.onSynced()
    },
  }
}

function subscribe(collection: ReturnType<typeof createCollection>, revision?: string) {
  const subscription = createSubscription(collection, { id: 1, revision, onPending() {} })
  collection.subscribers.add(subscription)
  return () => {
    const messages: { type: string; objects?: { uid: string; revision: number }[]; rev?: string }[] = []
    for (let text = subscription.nextMessage(); text !== undefined; text = subscription.nextMessage())
      messages.push(JSON.parse(text))
    return messages
  }
}

const summary = (messages: ReturnType<ReturnType<typeof subscribe>>) =>
  messages.map(({ type, objects, rev }) => [type, objects?.map(({ uid }) => uid).join(' ') ?? '', rev ?? ''].join('|'))

describe('createSubscription', () => {
  it('sends the first page before the list is complete', () => {
    const collection = createCollection()
    const read = subscribe(collection)
    expect(read()).toEqual([])
    collection.put('a')
    expect(summary(read())).toEqual(['RESET||', 'ITEMS|a|'])
    collection.put('b')
    collection.setListed()
    expect(summary(read())).toEqual(['ITEMS|b|', 'SYNCED||2'])
  })

  it('SYS-13 coalesces all changes to an object into its newest state', () => {
    const collection = createCollection()
    collection.setListed()
    const read = subscribe(collection)
    read()
    for (let count = 0; count < 1_000; count++) collection.put(`object-${count % 3}`)
    const messages = read()
    expect(summary(messages)).toEqual(['ADDED|object-0 object-1 object-2|1000'])
    expect(messages[0]!.objects!.map(({ revision }) => revision)).toEqual([1_000, 998, 999])
  })

  it('does not send an object that was added and deleted between two messages', () => {
    const collection = createCollection()
    collection.put('a')
    collection.setListed()
    const read = subscribe(collection)
    read()
    collection.put('b')
    collection.remove('b')
    collection.put('a')
    collection.remove('a')
    expect(summary(read())).toEqual(['DELETED|a|5'])
  })

  it('sends a revision only after all changes up to it', () => {
    const collection = createCollection()
    collection.setListed()
    const read = subscribe(collection)
    read()
    for (let count = 0; count < 700; count++) collection.put(`object-${count}`)
    expect(read().map(({ objects, rev }) => [objects?.length, rev])).toEqual([
      [500, '0'],
      [200, '700'],
    ])
  })

  it('resumes from the revision of the list or a later one, and sends the whole list for an earlier revision', () => {
    const collection = createCollection()
    collection.put('a')
    collection.put('b')
    collection.setListed()
    collection.put('a')
    collection.remove('b')
    expect(summary(subscribe(collection, '2')())).toEqual(['MODIFIED|a|2', 'DELETED|b|4'])
    expect(summary(subscribe(collection, '4')())).toEqual(['SYNCED||4'])
    expect(summary(subscribe(collection, '1')())).toEqual(['RESET||', 'ITEMS|a|', 'SYNCED||4'])
  })

  it('sends the revision 0 until the list is complete, even if an object is deleted while the list is sent', () => {
    const collection = createCollection()
    collection.put('a')
    collection.setListed()
    const subscription = createSubscription(collection, { id: 1, revision: undefined, onPending() {} })
    collection.subscribers.add(subscription)
    subscription.nextMessage()
    expect(subscription.nextMessage()).toContain('ITEMS')
    collection.remove('a')
    expect(JSON.parse(subscription.nextMessage()!)).toMatchObject({ type: 'DELETED', rev: '0' })
    expect(JSON.parse(subscription.nextMessage()!)).toEqual({ id: 1, type: 'SYNCED', rev: '2' })
  })

  it('drops old deletions, and cannot resume from before them', () => {
    const state = createObjectState()
    state.setListed(0)
    for (let revision = 1; revision <= 10_001; revision++) {
      state.put(`object-${revision}`, { json: '{}', revision })
      state.delete(`object-${revision}`, { json: '{}', revision })
    }
    expect(state.changedSince(0)).toBe(undefined)
    expect(state.changedSince(1)?.deleted).toHaveLength(10_000)
    expect(state.bytes).toBe(0)
  })
})
