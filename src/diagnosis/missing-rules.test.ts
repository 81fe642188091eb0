import { expect, it } from 'vitest'
import { seededRandom } from '../../test/helpers/random.ts'
import { forbidden, unavailable } from '../api/status-error.ts'
import type { Client } from '../client/index.ts'
import { diagnose } from './diagnose.ts'
import { generateCluster } from './random-cluster.fixture.ts'
import { readSnapshot } from './read-snapshot.ts'
import { SNAPSHOT_KINDS, type SnapshotList } from './snapshot.ts'

const target = { kind: 'pod', namespace: 'shop', name: 'new' } as const
const complete = generateCluster(seededRandom(1))

/** Reads the snapshot as a user who may not read the lists, but may list pods in a namespace. */
const readWithout = (...lists: readonly SnapshotList[]) => {
  const client = {
    async list(kind: { readonly plural: string }, request: { readonly namespace?: string }) {
      const list = Object.entries(SNAPSHOT_KINDS).find(([, { plural }]) => plural === kind.plural)![0] as SnapshotList
      if (lists.includes(list) && !(list === 'pods' && request.namespace))
        throw forbidden(SNAPSHOT_KINDS[list], '', 'no')
      return { items: complete[list], resourceVersion: '1' }
    },
    serves: async ({ plural }: { readonly plural: string }) => plural !== SNAPSHOT_KINDS.operations.plural,
  } as unknown as Pick<Client, 'list' | 'serves'>
  return readSnapshot({ client, namespace: 'shop', nowMs: 0, signal: new AbortController().signal })
}

it('PLUS-1 the diagnosis names the missing permissions, and still finds the pod in its namespace', async () => {
  const result = diagnose(await readWithout('pods', 'nodes'), target)
  const message = expect.stringContaining('permission to list pods in all namespaces, list nodes')
  expect(result).toMatchObject({ is: 'diagnosed', diagnosis: { state: 'unknown', reason: 'MissingRights', message } })
})

it('PLUS-1 the diagnosis names the missing permission if the object itself cannot be read', async () => {
  const snapshot = await readWithout('nodes')
  expect(diagnose(snapshot, { kind: 'node', name: 'node-0' })).toEqual({ is: 'forbidden', rules: ['list nodes'] })
})

it("PLUS-1 the diagnosis names the permission in an object's namespace if that is enough to read it", async () => {
  const snapshot = await readWithout('claims')
  expect(diagnose(snapshot, { kind: 'pvc', namespace: 'shop', name: 'data' })).toEqual({
    is: 'forbidden',
    rules: ['list persistentvolumeclaims in the namespace shop'],
  })
})

it('PLUS-1 the diagnosis reports a missing object and not a missing permission if the namespace could be listed', async () => {
  const snapshot = { ...(await readWithout('pods')), pods: [] }
  expect(diagnose(snapshot, { ...target, name: 'other' })).toEqual({ is: 'not found', similarNames: [] })
})

it('PLUS-1 readSnapshot reports no missing permission for a list that a stock API server denies because it does not serve the kind', async () => {
  const { notServed, missingRules } = await readWithout('operations', 'events')
  expect([...notServed]).toEqual(['operations'])
  expect(missingRules).toEqual([{ list: 'events', rule: 'list events in the namespace shop' }])
})

it('PLUS-1 the diagnosis names the lists that may contain other causes of a pod', async () => {
  const result = diagnose(await readWithout('events'), target)
  const last = result.is === 'diagnosed' ? result.diagnosis.children?.at(-1) : undefined
  const message = 'there may be other causes; finding them requires permission to list events in the namespace shop'
  expect(last).toMatchObject({ state: 'unknown', reason: 'MissingRights', message })
})

it('PLUS-1 readSnapshot rejects with the error of an unavailable server', async () => {
  const client = { list: () => Promise.reject(unavailable('the server stops')), serves: async () => true }
  const reading = readSnapshot({ client, nowMs: 0, signal: new AbortController().signal })
  await expect(reading).rejects.toMatchObject({ code: 503 })
})
