// Crashes a process at each of its calls, before the call takes effect or before its reply arrives, and starts another.
// The result must be the same, and the storage must hold no volume without a PV.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { forbidden } from '../../api/status-error.ts'
import type { Failure } from './provisioner.ts'
import {
  createProvisioningFixture,
  DISKS,
  type ProcessOptions,
  type ProvisioningFixture,
} from './provisioning.fixture.ts'

interface Story {
  readonly title: string
  /** Prepares the fixture before the process starts. */
  begin?(fixture: ProvisioningFixture): Promise<void>
  /** Options of the process that crashes. */
  readonly process?: ProcessOptions
  /** Repeated while a process runs: the actions of users and other controllers. */
  meanwhile(fixture: ProvisioningFixture): Promise<void>
  isOver(fixture: ProvisioningFixture): Promise<boolean>
}

const deleteClaim = (fixture: ProvisioningFixture) =>
  fixture.client.delete(persistentVolumeClaimKind, { namespace: 'default', name: 'data' }).catch(() => undefined)

const isProvided = async (fixture: ProvisioningFixture): Promise<boolean> => {
  const [claim, volumes] = [await fixture.claim('data'), await fixture.volumes()]
  return (
    volumes.length === 1 &&
    claim?.spec?.volumeName === volumes[0]?.metadata.name &&
    claim?.metadata.finalizers?.join() === 'kubernetes.io/pvc-protection' &&
    fixture.storage.assets.size === 1
  )
}
const isGone = async (fixture: ProvisioningFixture): Promise<boolean> =>
  (await fixture.claim('data')) === undefined &&
  (await fixture.volumes()).length === 0 &&
  fixture.storage.assets.size === 0

const REFUSES: ProcessOptions['intercept'] = (verb, args) => {
  const writes = verb === 'commit' ? args[0] : verb === 'create' ? [{ do: 'create' }] : []
  if (writes.some((write: any) => write.do === 'create')) {
    throw forbidden({ group: '', plural: 'persistentvolumes' }, 'pvc', 'not allowed')
  }
}

const STORIES: readonly Story[] = [
  {
    title: 'a claim is provided for',
    meanwhile: (fixture) => fixture.housekeeping(),
    isOver: isProvided,
  },
  {
    title: 'a claim is provided for at the third try',
    begin: async ({ storage }) => void storage.script.push({ fails: 'unfinished', creates: true }, { fails: 'final' }),
    meanwhile: (fixture) => fixture.housekeeping(),
    isOver: isProvided,
  },
  {
    title: 'a claim is provided for, deleted, and its volume with it',
    async meanwhile(fixture) {
      await fixture.housekeeping()
      if ((await fixture.claim('data'))?.spec?.volumeName) await deleteClaim(fixture)
    },
    isOver: isGone,
  },
  {
    title: 'a claim is deleted as soon as the storage was called',
    async meanwhile(fixture) {
      if (fixture.storage.provisions.length > 0) await deleteClaim(fixture)
      await fixture.housekeeping()
    },
    async isOver(fixture) {
      return fixture.storage.provisions.length > 0 && isGone(fixture)
    },
  },
  {
    title: 'the server rejects the volume, the claim starts over',
    process: { intercept: REFUSES },
    meanwhile: (fixture) => fixture.housekeeping(),
    isOver: isProvided,
  },
  {
    title: 'the volume is too small, the claim starts over',
    begin: async ({ storage }) => void storage.script.push({ size: '1Mi' }),
    meanwhile: (fixture) => fixture.housekeeping(),
    isOver: isProvided,
  },
]

describe.each([
  { isAtomic: true, bindsOnSave: false },
  { isAtomic: true, bindsOnSave: true },
  { isAtomic: false, bindsOnSave: true },
])('crash at any call (atomic commits: $isAtomic, bindsOnSave: $bindsOnSave)', ({ isAtomic, bindsOnSave }) => {
  const options = { bindsOnSave }
  it.each(STORIES)('PROV-12 $title', async (story) => {
    let kills = 0
    for (const when of ['before', 'after'] as const) {
      for (let call = 0; ; call++) {
        const fixture = await createProvisioningFixture()
        await fixture.aClass('fast')
        await fixture.aClaim('data')
        await story.begin?.(fixture)
        const first = fixture.start({ ...story.process, isAtomic, options, killAt: { call, when } })
        // The first process never ends, because every call is refused: it is killed at each of its calls of one round.
        const isEnd = async () => first.hasCrashed || (await story.isOver(fixture)) || first.calls.length > call + 50
        await fixture.until(isEnd, `the first process, ${when} call ${call}`, () => story.meanwhile(fixture))
        const wasKilled = first.hasCrashed
        const at = `killed ${when} ${first.calls[call]}, call ${call}`
        if (wasKilled) {
          kills++
          await story.meanwhile(fixture) // the fixture does not wait for the next one
          fixture.start({ isAtomic, options })
          await fixture.until(
            () => story.isOver(fixture),
            at,
            () => story.meanwhile(fixture),
          )
          await fixture.settle()
          expect(await story.isOver(fixture), at).toBe(true)
        }
        await fixture.close()
        if (!wasKilled || call >= CALLS_MAX) break
      }
    }
    expect(kills).toBeGreaterThan(4)
  })
})

const CALLS_MAX = 16

const FAILURES: readonly Failure[] = ['final', 'infeasible', 'reschedule', 'unfinished', 'noChange']

describe('any sequence of storage results', () => {
  it('PROV-12 leaves no volume in the storage without a PV, and nothing after a claim is deleted', async () => {
    const answer = fc.oneof(
      fc.record({
        fails: fc.constantFrom(...FAILURES),
        isMade: fc.boolean(),
      }),
      fc.constant({ size: '1Mi' }),
      fc.constant({}),
    )
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          answers: fc.array(answer, { maxLength: 5 }),
          isAtomic: fc.boolean(),
          options: fc.record({ bindsOnSave: fc.boolean() }),
          killAts: fc.array(fc.record({ call: fc.nat(12), when: fc.constantFrom('before', 'after') }), {
            maxLength: 3,
          }),
          deletedAtProvision: fc.option(fc.nat(4), { nil: undefined }),
          deleteFailures: fc.nat(2),
        }),
        async ({ answers, isAtomic, options, killAts, deletedAtProvision, deleteFailures }) => {
          const fixture = await createProvisioningFixture()
          await fixture.aClass('fast')
          await fixture.aClaim('data')
          for (const one of answers) {
            if (!('fails' in one)) fixture.storage.script.push(one)
            else fixture.storage.script.push({ fails: one.fails, creates: one.fails === 'unfinished' && one.isMade })
          }
          for (let i = 0; i < deleteFailures; i++) fixture.storage.deleteScript.push({ is: 'failed', because: 'busy' })
          const isDeleted = () =>
            deletedAtProvision !== undefined && fixture.storage.provisions.length > deletedAtProvision
          const meanwhile = async () => {
            if (isDeleted()) await deleteClaim(fixture)
            await fixture.housekeeping()
          }
          const isEnd = async () => ((await isProvided(fixture)) && !isDeleted()) || (await isGone(fixture))
          for (const killAt of killAts) {
            const process = fixture.start({
              isAtomic,
              options,
              killAt: killAt as NonNullable<ProcessOptions['killAt']>,
            })
            await fixture.until(async () => process.hasCrashed || (await isEnd()), 'the kill', meanwhile)
            if (!process.hasCrashed) await process.stop()
          }
          fixture.start({ isAtomic, options })
          await fixture.until(isEnd, 'the end', meanwhile)
          await fixture.settle()
          expect(await isEnd()).toBe(true)
          const [volume] = await fixture.volumes()
          expect([...fixture.storage.assets.keys()]).toEqual(volume ? [`${DISKS}/${volume.metadata.name}`] : [])
          await fixture.close()
        },
      ),
      { numRuns: 60 },
    )
  })
})
