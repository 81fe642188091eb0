// A process is killed before and after every write and call it makes; the next one finishes. What counts in the end is
// what the driver's volume has, and that claim and volume say the same.
import { afterEach, describe, expect, it } from 'vitest'
import { aWorld, type World } from './modifying.fixture.ts'
import { UNDO } from './undo.ts'

let world: World
afterEach(() => world.close())

interface Story {
  readonly title: string
  /** The driver loses its first reply, or fails so. */
  readonly first?: 'loseReply' | 'INTERNAL' | 'INVALID_ARGUMENT'
  /** What the user wants; and then, once the driver was asked. */
  readonly wish: object
  readonly afterwards?: object
  readonly ends: { readonly className: string; readonly has: Readonly<Record<string, string>>; readonly iops?: string }
  readonly needsAtomic?: true
}

const aClass = (volumeAttributesClassName: string) => ({ spec: { volumeAttributesClassName } })
const withIops = (iops: string) => ({ spec: { resources: { requests: { iops } } } })
const STORIES: readonly Story[] = [
  { title: 'another class', wish: aClass('gold'), ends: { className: 'gold', has: { tier: 'gold', zone: '1' } } },
  {
    title: 'another class, and back after a lost reply',
    first: 'loseReply',
    wish: aClass('gold'),
    afterwards: aClass('silver'),
    ends: { className: 'silver', has: { tier: 'silver', zone: '1' } },
  },
  {
    title: 'another class, and back after a failure',
    first: 'INTERNAL',
    wish: aClass('gold'),
    afterwards: aClass('silver'),
    ends: { className: 'silver', has: { tier: 'silver', zone: '1' } },
  },
  {
    title: 'another class that is refused, and back',
    first: 'INVALID_ARGUMENT',
    wish: aClass('gold'),
    afterwards: aClass('silver'),
    ends: { className: 'silver', has: { tier: 'silver', zone: '1' } },
  },
  {
    title: 'more iops',
    wish: withIops('900'),
    ends: { className: 'silver', has: { tier: 'silver', zone: '1', iops: '900' }, iops: '900' },
    needsAtomic: true,
  },
  {
    title: 'class and iops, and back after a lost reply',
    first: 'loseReply',
    wish: { spec: { volumeAttributesClassName: 'gold', resources: { requests: { iops: '900' } } } },
    afterwards: { spec: { volumeAttributesClassName: 'silver', resources: { requests: { iops: '500' } } } },
    ends: { className: 'silver', has: { tier: 'silver', zone: '1', iops: '500' }, iops: '500' },
    needsAtomic: true,
  },
]

async function begin(story: Story): Promise<void> {
  world = await aWorld({ settings: { mutableKeys: ['tier', 'zone', 'iops'] } })
  await world.aClass('zoned', { zone: '1' })
  await world.aClass('silver', { tier: 'silver' })
  await world.aClass('gold', { tier: 'gold' })
  const io = story.ends.iops === undefined ? {} : { io: { iops: '500' } }
  const has = { ...(story.ends.iops === undefined ? {} : { iops: '500' }), tier: 'silver', zone: '1' }
  await world.aClaim('data', { className: 'silver', has, ...io })
  const { first } = story
  if (first === 'loseReply') world.rules([{ times: 1, effect: { do: 'loseReply', as: 'unavailable' } }])
  else if (first) world.fails(first, 1)
}

async function tell(story: Story, process: { readonly isDead: boolean }): Promise<void> {
  await world.patchClaim('data', story.wish)
  if (!story.afterwards) return
  await world.until(() => process.isDead || world.asked().length > 0, 'the first call, or death')
  await world.patchClaim('data', story.afterwards)
}

async function verify({ ends }: Story, process: ReturnType<World['start']>): Promise<void> {
  await world.settle()
  await world.until(() => !process.isBusy() && !process.standing(), 'all to be done')
  await world.untilSettled(ends.className)
  const [claim, volume] = [await world.claim(), await world.volume()]
  expect(world.has()).toEqual(ends.has)
  expect(volume.spec?.volumeAttributesClassName).toBe(ends.className)
  expect(claim.metadata.annotations?.[UNDO]).toBeUndefined()
  if (ends.iops === undefined) return
  expect(claim.status?.capacity?.iops).toBe(ends.iops)
  expect(volume.spec?.capacity?.iops).toBe(ends.iops)
  expect(claim.status?.allocatedResourceStatuses).toBeUndefined()
}

describe.each([true, false])('killed at any call (commits are atomic: %s)', (isAtomic) => {
  const stories = STORIES.filter(({ needsAtomic }) => isAtomic || !needsAtomic)
  it.each(stories)('VAC-5 VAC-7 $title', async (story) => {
    await begin(story)
    const whole = world.start({ isAtomic })
    await tell(story, whole)
    await verify(story, whole)
    const calls = whole.calls.length
    expect(calls).toBeGreaterThanOrEqual(3)
    for (let call = 0; call < calls; call++) {
      for (const when of ['before', 'after'] as const) {
        await world.close()
        await begin(story)
        const doomed = world.start({ isAtomic, killAt: { call, when } })
        await tell(story, doomed)
        await world.until(() => doomed.isDead, `the end at call ${call}`)
        await verify(story, world.start({ isAtomic }))
      }
    }
  })
})
