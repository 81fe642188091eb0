import { describe, expect, it } from 'vitest'
import { configMapKind } from '../api/kinds/config-map/config-map.ts'
import {
  CompactedError,
  DamagedRecordError,
  FutureRevisionError,
  type Store,
  StoreBusyError,
  StoreClosedError,
  StoreUnavailableError,
  WriteRejectedError,
} from '../store/index.ts'
import { inProcessClient, SYSTEM_USER } from './index.ts'
import { createServerFixture } from './server.fixture.ts'
import { apiErrorOfStore } from './store-errors.ts'

const ERRORS: readonly (readonly [string, Error, number])[] = [
  ['StoreUnavailableError', new StoreUnavailableError('etcd does not respond'), 503],
  ['StoreClosedError', new StoreClosedError(), 503],
  ['StoreBusyError', new StoreBusyError(9), 429],
  ['WriteRejectedError', new WriteRejectedError('the disk is full'), 500],
  ['DamagedRecordError', new DamagedRecordError({ key: 'core/secrets/a/b', revision: 7, reason: 'missing' }), 500],
  ['CompactedError', new CompactedError(7), 410],
  ['FutureRevisionError', new FutureRevisionError(9, 7), 504],
]

describe('errors of the store', () => {
  it.each(ERRORS)('become the same API error over HTTP and in the in-process client: %s', async (_, error, code) => {
    const api = await createServerFixture()
    const client = inProcessClient(api.server.objects, SYSTEM_USER)
    const store = api.store as { -readonly [K in keyof Store]: Store[K] }
    store.transact = () => Promise.reject(error)
    const object = { metadata: { namespace: 'default', name: 'a' } }
    const { status, json } = await api.post('/api/v1/namespaces/default/configmaps', object)
    const rejection = await client.create(configMapKind, object).catch((reason) => reason)
    expect(status).toBe(code)
    expect(rejection).toMatchObject({ code, reason: json.reason, message: json.message })
  })

  it.each([
    ['core/configmaps/default/a', 'the stored configmaps "a" in namespace "default" is damaged at revision 7: x.'],
    [
      'storage.k8s.io/storageclasses/fast',
      'the stored storageclasses.storage.k8s.io "fast" is damaged at revision 7: x.',
    ],
    ['other', 'the stored other is damaged at revision 7: x.'],
  ])('SYS-20 name the object of a damaged record and the remedy: %s', (key, message) => {
    const error = apiErrorOfStore(new DamagedRecordError({ key, revision: 7, reason: 'x' }))
    expect(error).toMatchObject({ code: 500, reason: 'InternalError' })
    expect(error?.message).toContain(message)
    expect(error?.message).toContain('stowage store repair')
  })
})
