import { expect, it } from 'vitest'
import { type BulkForm, describeRequest, listActions, readBulkForm } from './bulk.ts'

const form: BulkForm = {
  kind: 'grow',
  namespace: 'shop',
  names: 'orders, users',
  selector: '',
  mode: 'by',
  size: '10Gi',
  from: 'silver',
  to: 'gold',
  parallel: '2',
  maxFailures: '0',
}

it('SYS-13 converts a form to a request, and describes the request in one line', () => {
  const grow = {
    kind: 'grow',
    namespace: 'shop',
    names: ['orders', 'users'],
    by: '10Gi',
    parallel: 2,
    maxFailures: 0,
  } as const
  expect(readBulkForm(form)).toEqual({ request: grow })
  expect(describeRequest(grow)).toBe('Grow 2 claims in shop by 10Gi')
  const migrate = { kind: 'migrate', from: 'silver', to: 'gold', parallel: 2, maxFailures: 0 } as const
  expect(readBulkForm({ ...form, kind: 'migrate', namespace: '' })).toEqual({ request: migrate })
  expect(describeRequest(migrate)).toBe('Move claims in all namespaces from silver to gold')
})

it.each([
  [{ namespace: '' }, 'namespace'],
  [{ names: '' }, 'names of claims or a selector'],
  [{ selector: 'app=shop' }, 'not both'],
  [{ size: 'ten' }, 'not a size'],
  [{ parallel: '0' }, '1 or more'],
  [{ maxFailures: '' }, '0 or more'],
  [{ kind: 'migrate', from: 'gold' }, 'the same'],
] as const)('rejects a form with %o', (fields, text) => {
  expect(readBulkForm({ ...form, ...fields })).toMatchObject({ problem: expect.stringContaining(text) })
})

it('offers to pause a running run, to resume or undo a paused one, and nothing for an ended undo or a run without changes', () => {
  const counts = { done: 1, unchanged: 0, failed: 0, unfinished: 0 }
  const request = { kind: 'migrate', from: 'silver', to: 'gold' } as const
  expect(listActions({ state: 'running', isUndo: false, counts, request })).toEqual(['pause'])
  expect(listActions({ state: 'paused', isUndo: false, counts, request })).toEqual(['resume', 'undo'])
  expect(listActions({ state: 'done', isUndo: true, counts, request })).toEqual([])
  expect(listActions({ state: 'done', isUndo: false, counts: { ...counts, done: 0 }, request })).toEqual([])
})

it('offers to undo a grow run only for unfulfilled requests', () => {
  const counts = { done: 1, unchanged: 0, failed: 0, unfinished: 0 }
  const request = { kind: 'grow', namespace: 'shop', names: ['a'], by: '1Gi' } as const
  expect(listActions({ state: 'done', isUndo: false, counts, request })).toEqual([])
  expect(listActions({ state: 'done', isUndo: false, counts: { ...counts, failed: 1 }, request })).toEqual(['undo'])
})
