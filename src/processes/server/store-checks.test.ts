import { expect, it } from 'vitest'
import { createHealth } from '../../apiserver/index.ts'
import { DamagedRecordError, type Store } from '../../store/index.ts'
import { addStoreChecks } from './store-checks.ts'

const damageOf = (name: string, revision: number) =>
  new DamagedRecordError({ key: `core/configmaps/default/${name}`, revision, reason: 'x' })

async function readReadyz(
  damaged: readonly DamagedRecordError[],
  { isAuthenticated = true, isStoreShared = false }: { isAuthenticated?: boolean; isStoreShared?: boolean } = {},
): Promise<{ status: number; text: string }> {
  const health = createHealth()
  const store: Pick<Store, 'problem' | 'damagedRecords'> = {
    problem: async () => undefined,
    damagedRecords: () => damaged,
  }
  addStoreChecks(health, store as Store, { isStoreShared })
  const response = await health.handle('/readyz', new URLSearchParams('verbose'), { isAuthenticated })
  return { status: response!.status, text: String(response!.body) }
}

it('SYS-20 fails readiness if records are damaged, and names the first three', async () => {
  expect(await readReadyz([])).toMatchObject({ status: 200, text: expect.stringContaining('[+]store-records ok') })
  const { status, text } = await readReadyz(['a', 'b', 'c', 'd'].map((name, index) => damageOf(name, index + 7)))
  expect(status).toBe(503)
  expect(text).toContain('[+]store ok')
  expect(text).toContain(
    '[-]store-records failed: 4 records are damaged: configmaps "a" in namespace "default" at revision 7, ' +
      'configmaps "b" in namespace "default" at revision 8, configmaps "c" in namespace "default" at revision 9, ' +
      'and 1 more; run "stowage store check"',
  )
})

it('SYS-20 reports only the number of damaged records to unauthenticated clients', async () => {
  const { status, text } = await readReadyz([damageOf('a', 7)], { isAuthenticated: false })
  expect(status).toBe(503)
  expect(text).toContain('[-]store-records failed: 1 record is damaged; authenticate to see which\n')
})

it('SYS-20 suggests an etcd snapshot instead of `stowage store check` if the store is etcd', async () => {
  const { text } = await readReadyz([damageOf('a', 7)], { isStoreShared: true })
  expect(text).toContain('[+]etcd ok')
  expect(text).toContain('"a" in namespace "default" at revision 7; restore etcd from a snapshot\n')
})
