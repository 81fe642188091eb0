// A process is killed at every call it makes, before it has any effect and when its answer would come; another one is
// started; and the end must be the same, with nothing in the storage that no volume stands for.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { forbidden } from '../../api/status-error.ts'
import type { Failure } from './provisioner.ts'
import { aWorld, DISKS, type ProcessOptions, type World } from './provisioning.fixture.ts'

interface Story {
  readonly title: string
  /** Prepares the world before the process starts. */
  begin?(world: World): Promise<void>
  /** Of the process that is killed. */
  readonly process?: ProcessOptions
  /** Done over and over while a process runs, as other people would. */
  meanwhile(world: World): Promise<void>
  isOver(world: World): Promise<boolean>
}

const deleteClaim = (world: World) =>
  world.client.delete(persistentVolumeClaimKind, { namespace: 'default', name: 'data' }).catch(() => undefined)

const isProvided = async (world: World): Promise<boolean> => {
  const [claim, volumes] = [await world.claim('data'), await world.volumes()]
  return (
    volumes.length === 1 &&
    claim?.spec?.volumeName === volumes[0]?.metadata.name &&
    claim?.metadata.finalizers?.join() === 'kubernetes.io/pvc-protection' &&
    world.storage.assets.size === 1
  )
}
const isGone = async (world: World): Promise<boolean> =>
  (await world.claim('data')) === undefined && (await world.volumes()).length === 0 && world.storage.assets.size === 0

const REFUSES: ProcessOptions['intercept'] = (verb, args) => {
  const writes = verb === 'commit' ? args[0] : verb === 'create' ? [{ do: 'create' }] : []
  if (writes.some((write: any) => write.do === 'create')) {
    throw forbidden({ group: '', plural: 'persistentvolumes' }, 'pvc', 'not allowed')
  }
}

const STORIES: readonly Story[] = [
  {
    title: 'a claim is provided for',
    meanwhile: (world) => world.housekeeping(),
    isOver: isProvided,
  },
  {
    title: 'a claim is provided for at the third try',
    begin: async ({ storage }) => void storage.script.push({ fails: 'unfinished', creates: true }, { fails: 'final' }),
    meanwhile: (world) => world.housekeeping(),
    isOver: isProvided,
  },
  {
    title: 'a claim is provided for, deleted, and its volume with it',
    async meanwhile(world) {
      await world.housekeeping()
      if ((await world.claim('data'))?.spec?.volumeName) await deleteClaim(world)
    },
    isOver: isGone,
  },
  {
    title: 'a claim is deleted as soon as the storage was asked',
    async meanwhile(world) {
      if (world.storage.provisions.length > 0) await deleteClaim(world)
      await world.housekeeping()
    },
    async isOver(world) {
      return world.storage.provisions.length > 0 && isGone(world)
    },
  },
  {
    title: 'the server refuses the volume, the claim starts over',
    process: { intercept: REFUSES },
    meanwhile: (world) => world.housekeeping(),
    isOver: isProvided,
  },
  {
    title: 'the volume is too small, the claim starts over',
    begin: async ({ storage }) => void storage.script.push({ size: '1Mi' }),
    meanwhile: (world) => world.housekeeping(),
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
        const world = await aWorld()
        await world.aClass('fast')
        await world.aClaim('data')
        await story.begin?.(world)
        const first = world.start({ ...story.process, isAtomic, options, killAt: { call, when } })
        // Refused for ever, the first one never ends by itself: it is killed at each of its calls of one round.
        const isEnd = async () => first.isDead || (await story.isOver(world)) || first.calls.length > call + 50
        await world.until(isEnd, `the first process, ${when} call ${call}`, () => story.meanwhile(world))
        const wasKilled = first.isDead
        const at = `killed ${when} ${first.calls[call]}, call ${call}`
        if (wasKilled) {
          kills++
          await story.meanwhile(world) // the world does not wait for the next one
          world.start({ isAtomic, options })
          await world.until(
            () => story.isOver(world),
            at,
            () => story.meanwhile(world),
          )
          await world.settle()
          expect(await story.isOver(world), at).toBe(true)
        }
        await world.close()
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
          const world = await aWorld()
          await world.aClass('fast')
          await world.aClaim('data')
          for (const one of answers) {
            if (!('fails' in one)) world.storage.script.push(one)
            else world.storage.script.push({ fails: one.fails, creates: one.fails === 'unfinished' && one.isMade })
          }
          for (let i = 0; i < deleteFailures; i++) world.storage.deleteScript.push({ is: 'failed', because: 'busy' })
          const isDeleted = () =>
            deletedAtProvision !== undefined && world.storage.provisions.length > deletedAtProvision
          const meanwhile = async () => {
            if (isDeleted()) await deleteClaim(world)
            await world.housekeeping()
          }
          const isEnd = async () => ((await isProvided(world)) && !isDeleted()) || (await isGone(world))
          for (const killAt of killAts) {
            const process = world.start({ isAtomic, options, killAt: killAt as NonNullable<ProcessOptions['killAt']> })
            await world.until(async () => process.isDead || (await isEnd()), 'the kill', meanwhile)
            if (!process.isDead) await process.stop()
          }
          world.start({ isAtomic, options })
          await world.until(isEnd, 'the end', meanwhile)
          await world.settle()
          expect(await isEnd()).toBe(true)
          const [volume] = await world.volumes()
          expect([...world.storage.assets.keys()]).toEqual(volume ? [`${DISKS}/${volume.metadata.name}`] : [])
          await world.close()
        },
      ),
      { numRuns: 60 },
    )
  })
})
