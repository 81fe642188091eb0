import { expect, it } from 'vitest'
import type { ConsoleObject } from '../../protocol.ts'
import { Collection } from './collection.ts'

const object = (name: string, rev = '1'): ConsoleObject => ({ metadata: { name, uid: name, resourceVersion: rev } })
const createCollection = () => new Collection(({ metadata }) => ({ uid: metadata.uid, rev: metadata.resourceVersion }))
const names = (collection: ReturnType<typeof createCollection>) => [...collection.rows.keys()]

it('SYS-13 shows a list page by page, and is synced at its end', () => {
  const collection = createCollection()
  collection.apply({ id: 1, type: 'RESET' })
  collection.apply({ id: 1, type: 'ITEMS', objects: [object('a')] })
  expect([names(collection), collection.state.value.is]).toEqual([['a'], 'loading'])
  collection.apply({ id: 1, type: 'ITEMS', objects: [object('b')] })
  collection.apply({ id: 1, type: 'SYNCED', rev: '7' })
  expect([names(collection), collection.state.value.is, collection.rev]).toEqual([['a', 'b'], 'synced', '7'])
})

it('keeps the rows until a second list is complete, and then removes those that it does not contain', () => {
  const collection = createCollection()
  collection.apply({ id: 1, type: 'RESET' })
  collection.apply({ id: 1, type: 'ITEMS', objects: [object('a'), object('b')] })
  collection.apply({ id: 1, type: 'SYNCED', rev: '7' })
  collection.apply({ id: 1, type: 'RESET' })
  expect(collection.rev).toBeUndefined()
  collection.apply({ id: 1, type: 'ITEMS', objects: [object('b', '2')] })
  expect(names(collection)).toEqual(['a', 'b'])
  collection.apply({ id: 1, type: 'SYNCED', rev: '9' })
  expect(names(collection)).toEqual(['b'])
})

it('keeps all rows when a watch is resumed', () => {
  const collection = createCollection()
  collection.apply({ id: 1, type: 'RESET' })
  collection.apply({ id: 1, type: 'ITEMS', objects: [object('a')] })
  collection.apply({ id: 1, type: 'SYNCED', rev: '7' })
  collection.apply({ id: 1, type: 'SYNCED', rev: '8' })
  expect(names(collection)).toEqual(['a'])
})

it('reports each change with the row before and after it', () => {
  const collection = createCollection()
  const changes: unknown[] = []
  collection.onChange(({ before, after }) => changes.push([before?.rev, after?.rev]))
  collection.apply({ id: 1, type: 'ADDED', objects: [object('a', '1')], rev: '1' })
  collection.apply({ id: 1, type: 'MODIFIED', objects: [object('a', '2')], rev: '2' })
  collection.apply({ id: 1, type: 'DELETED', objects: [object('a', '3')], rev: '3' })
  collection.apply({ id: 1, type: 'DELETED', objects: [object('a', '3')], rev: '3' })
  expect(changes).toEqual([
    [undefined, '1'],
    ['1', '2'],
    ['2', undefined],
  ])
})

it('SYS-13 stays synced after an error with a retry, and fails after an error without one', () => {
  const forbidden = createCollection()
  forbidden.apply({ id: 1, type: 'ERROR', code: 403, reason: 'Forbidden', message: 'no' })
  expect(forbidden.state.value).toEqual({ is: 'failed', error: { code: 403, reason: 'Forbidden', message: 'no' } })
  const restarting = createCollection()
  restarting.apply({ id: 1, type: 'SYNCED', rev: '1' })
  restarting.apply({ id: 1, type: 'ERROR', code: 503, reason: 'ServiceUnavailable', message: 'later', retryAfterMs: 5 })
  expect(restarting.state.value).toMatchObject({ is: 'synced', error: { retryAfterMs: 5 } })
})
