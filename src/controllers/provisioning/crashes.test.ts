// Crashes a provisioner process at each of its first calls, before the call takes effect or before its reply arrives, and
// starts another process. The result must be the same, and the storage must have no volume without a PV. The last test crashes
// processes at random calls, with random results of the storage.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { forbidden } from '../../api/status-error.ts'
import type { Failure } from './provisioner.ts'
import {
  createProvisioningFixture,
  DISKS,
  INTENT_LEASE,
  type ProcessOptions,
  type ProvisioningFixture,
} from './provisioning.fixture.ts'

interface Scenario {
  readonly title: string
  /** Prepares the fixture before the process starts. */
  prepare?(fixture: ProvisioningFixture): Promise<void>
  /** Options of the process that is crashed. */
  readonly processOptions?: ProcessOptions
  /** Performs the actions of users and other controllers. Called repeatedly while a process runs. */
  runOtherActors(fixture: ProvisioningFixture): Promise<void>
  isDone(fixture: ProvisioningFixture): Promise<boolean>
}

const deleteClaim = (fixture: ProvisioningFixture) =>
  fixture.client.delete(persistentVolumeClaimKind, { namespace: 'default', name: 'data' }).catch(() => undefined)

const isProvisioned = async (fixture: ProvisioningFixture): Promise<boolean> => {
  const [claim, volumes] = [await fixture.claim('data'), await fixture.volumes()]
  return (
    volumes.length === 1 &&
    claim?.spec?.volumeName === volumes[0]?.metadata.name &&
    claim?.metadata.finalizers?.join() === 'kubernetes.io/pvc-protection' &&
    (await fixture.journaledClaims()).length === 0 &&
    fixture.storage.assets.size === 1
  )
}
const isDeleted = async (fixture: ProvisioningFixture): Promise<boolean> =>
  (await fixture.claim('data')) === undefined &&
  (await fixture.volumes()).length === 0 &&
  (await fixture.journaledClaims()).length === 0 &&
  fixture.storage.assets.size === 0

const REJECT_VOLUMES: ProcessOptions['intercept'] = (verb, args) => {
  const writes = verb === 'commit' ? args[0] : verb === 'create' ? [{ do: 'create', kind: args[0] }] : []
  if (writes.some((write: any) => write.do === 'create' && write.kind === persistentVolumeKind)) {
    throw forbidden({ group: '', plural: 'persistentvolumes' }, 'pvc', 'not allowed')
  }
}

const SCENARIOS: readonly Scenario[] = [
  {
    title: 'provisions a claim',
    runOtherActors: (fixture) => fixture.runOtherControllers(),
    isDone: isProvisioned,
  },
  {
    title: 'provisions a claim on the third attempt',
    prepare: async ({ storage }) =>
      void storage.script.push({ fails: 'unfinished', creates: true }, { fails: 'final' }),
    runOtherActors: (fixture) => fixture.runOtherControllers(),
    isDone: isProvisioned,
  },
  {
    title: 'deletes the volume of a claim that is deleted after provisioning',
    async runOtherActors(fixture) {
      await fixture.runOtherControllers()
      if ((await fixture.claim('data'))?.spec?.volumeName) await deleteClaim(fixture)
    },
    isDone: isDeleted,
  },
  {
    title: 'deletes the volume of a claim that is deleted during provisioning',
    async runOtherActors(fixture) {
      if (fixture.storage.provisions.length > 0) await deleteClaim(fixture)
      await fixture.runOtherControllers()
    },
    async isDone(fixture) {
      return fixture.storage.provisions.length > 0 && isDeleted(fixture)
    },
  },
  {
    title: 'provisions a claim again after the API server rejected its volume',
    processOptions: { intercept: REJECT_VOLUMES },
    runOtherActors: (fixture) => fixture.runOtherControllers(),
    isDone: isProvisioned,
  },
  {
    title: 'provisions a claim again after a volume that is too small',
    prepare: async ({ storage }) => void storage.script.push({ size: '1Mi' }),
    runOtherActors: (fixture) => fixture.runOtherControllers(),
    isDone: isProvisioned,
  },
]

describe.each([
  { isAtomic: true, intentLease: undefined, bindsOnSave: false },
  { isAtomic: true, intentLease: undefined, bindsOnSave: true },
  { isAtomic: false, intentLease: undefined, bindsOnSave: true },
  { isAtomic: false, intentLease: INTENT_LEASE, bindsOnSave: true },
])(
  'a provisioner that crashes (atomic commits: $isAtomic, bindsOnSave: $bindsOnSave, journal: $intentLease.name)',
  ({ isAtomic, ...options }) => {
    it.each(SCENARIOS)('PROV-12 $title', async (scenario) => {
      let crashes = 0
      for (const when of ['before', 'after'] as const) {
        for (let call = 0; ; call++) {
          const fixture = await createProvisioningFixture()
          await fixture.createClass('fast')
          await fixture.createClaim('data')
          await scenario.prepare?.(fixture)
          const first = fixture.start({ ...scenario.processOptions, isAtomic, options, killAt: { call, when } })
          // A process whose volumes are all rejected is never done, so the number of its calls is limited.
          const isFirstDone = async () =>
            first.hasCrashed || (await scenario.isDone(fixture)) || first.calls.length > call + 50
          await fixture.waitUntil(isFirstDone, `the first process, ${when} call ${call}`, () =>
            scenario.runOtherActors(fixture),
          )
          const hasCrashed = first.hasCrashed
          const crashPoint = `crashed ${when} ${first.calls[call]}, call ${call}`
          if (hasCrashed) {
            crashes++
            await scenario.runOtherActors(fixture) // while no process runs
            fixture.start({ isAtomic, options })
            await fixture.waitUntil(
              () => scenario.isDone(fixture),
              crashPoint,
              () => scenario.runOtherActors(fixture),
            )
            await fixture.settle()
            expect(await scenario.isDone(fixture), crashPoint).toBe(true)
          }
          await fixture.close()
          if (!hasCrashed || call >= CALLS_MAX) break
        }
      }
      expect(crashes).toBeGreaterThan(4)
    })
  },
)

const CALLS_MAX = 16

const FAILURES: readonly Failure[] = ['final', 'infeasible', 'reschedule', 'unfinished', 'noChange']

describe('a provisioner with any sequence of storage results and crashes', () => {
  it('PROV-12 leaves no volume without a PV in the storage, and no volume of a deleted claim', async () => {
    const resultArbitrary = fc.oneof(
      fc.record({
        fails: fc.constantFrom(...FAILURES),
        createsVolume: fc.boolean(),
      }),
      fc.constant({ size: '1Mi' }),
      fc.constant({}),
    )
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          results: fc.array(resultArbitrary, { maxLength: 5 }),
          isAtomic: fc.boolean(),
          options: fc.record({ bindsOnSave: fc.boolean(), intentLease: fc.constantFrom(undefined, INTENT_LEASE) }),
          killAts: fc.array(fc.record({ call: fc.nat(12), when: fc.constantFrom('before', 'after') }), {
            maxLength: 3,
          }),
          deletedAtProvision: fc.option(fc.nat(4), { nil: undefined }),
          deleteFailures: fc.nat(2),
        }),
        async ({ results, isAtomic, options, killAts, deletedAtProvision, deleteFailures }) => {
          const fixture = await createProvisioningFixture()
          await fixture.createClass('fast')
          await fixture.createClaim('data')
          for (const result of results) {
            if (!('fails' in result)) fixture.storage.script.push(result)
            else
              fixture.storage.script.push({
                fails: result.fails,
                creates: result.fails === 'unfinished' && result.createsVolume,
              })
          }
          for (let i = 0; i < deleteFailures; i++) fixture.storage.deleteScript.push({ is: 'failed', message: 'busy' })
          const isDeletionDue = () =>
            deletedAtProvision !== undefined && fixture.storage.provisions.length > deletedAtProvision
          const runOtherActors = async () => {
            if (isDeletionDue()) await deleteClaim(fixture)
            await fixture.runOtherControllers()
          }
          const isDone = async () => ((await isProvisioned(fixture)) && !isDeletionDue()) || (await isDeleted(fixture))
          for (const killAt of killAts) {
            const instance = fixture.start({
              isAtomic,
              options,
              killAt: killAt as NonNullable<ProcessOptions['killAt']>,
            })
            await fixture.waitUntil(
              async () => instance.hasCrashed || (await isDone()),
              'the process to crash or finish',
              runOtherActors,
            )
            if (!instance.hasCrashed) await instance.stop()
          }
          fixture.start({ isAtomic, options })
          await fixture.waitUntil(isDone, 'the final state', runOtherActors)
          await fixture.settle()
          expect(await isDone()).toBe(true)
          const [volume] = await fixture.volumes()
          expect([...fixture.storage.assets.keys()]).toEqual(volume ? [`${DISKS}/${volume.metadata.name}`] : [])
          await fixture.close()
        },
      ),
      { numRuns: 60 },
    )
  })
})
