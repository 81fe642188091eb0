// Tests that computations on large bodies run one per turn of the event loop and alternate between users,
// and that the API server processes large bodies this way.
import { describe, expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import { createServerFixture } from '../server.fixture.ts'
import { createBodyTurns } from './body-turns.ts'

/** Returns BodyTurns with a clock whose `nextTurn` resolves only when the test calls `endTurn`. */
function turnsFixture() {
  const turnEnds: (() => void)[] = []
  const clock = { ...manualClock(), nextTurn: () => new Promise<void>((resolve) => void turnEnds.push(resolve)) }
  return {
    turns: createBodyTurns(clock),
    endTurn: async () => {
      for (const resolve of turnEnds.splice(0)) resolve()
      await new Promise((resolve) => setImmediate(resolve))
    },
  }
}

describe('BodyTurns', () => {
  it('SYS-19 runs one computation per turn of the event loop', async () => {
    const { turns, endTurn } = turnsFixture()
    const completedIndexes: number[] = []
    const results = [0, 1, 2].map((index) => turns.run('ann', () => completedIndexes.push(index)))
    for (const count of [0, 1, 2, 3]) {
      expect(completedIndexes).toHaveLength(count)
      await endTurn()
    }
    expect(completedIndexes).toEqual([0, 1, 2])
    await Promise.all(results)
  })

  it('SYS-19 starts a computation only after the previous one has ended, even if the previous one pauses', async () => {
    const { turns, endTurn } = turnsFixture()
    const steps: string[] = []
    const compute = async (name: string) => {
      steps.push(`${name} starts`)
      await turns.pause()
      steps.push(`${name} ends`)
    }
    const results = ['first', 'second'].map((name) => turns.run('ann', () => compute(name)))
    for (let turn = 0; turn < 5; turn++) await endTurn()
    expect(steps).toEqual(['first starts', 'first ends', 'second starts', 'second ends'])
    await Promise.all(results)
  })

  it('SYS-19 alternates between users', async () => {
    const { turns, endTurn } = turnsFixture()
    const order: string[] = []
    for (const user of ['ann', 'ann', 'ann', 'bob', 'bob', 'cleo']) void turns.run(user, () => order.push(user))
    for (let turn = 0; turn < 7; turn++) await endTurn()
    expect(order).toEqual(['ann', 'bob', 'cleo', 'ann', 'bob', 'ann'])
    expect(turns.waitingCount).toBe(0)
  })

  it('SYS-19 returns the result or the error of a computation, and continues after an error', async () => {
    const { turns, endTurn } = turnsFixture()
    const failure = expect(turns.run('ann', () => Promise.reject(new Error('broken')))).rejects.toThrow('broken')
    const result = turns.run('ann', () => 42)
    await endTurn()
    await endTurn()
    await failure
    expect(await result).toBe(42)
  })
})

describe('the API server', () => {
  const REVIEWS = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
  const MAPS = '/api/v1/namespaces/default/configmaps'
  const MAP = `${MAPS}/map?fieldManager=test&dryRun=All`
  const LONG_TEXT = 'x'.repeat(40_000)
  const review = { spec: { nonResourceAttributes: { path: '/api', verb: 'get' } } }
  const map = { metadata: { name: 'map' }, data: { text: LONG_TEXT } }
  const write = { verb: 'patch', apiVersion: 'v1', resource: 'configmaps', namespace: 'default', name: 'map' }
  const yamlBody = (fields: string) => `${fields}\nmetadata:\n  annotations:\n    text: ${'x'.repeat(4_000)}\n`

  it.each([
    ['a review in YAML', 'POST', REVIEWS, 'application/yaml', yamlBody(`spec: ${JSON.stringify(review.spec)}`)],
    ['a review', 'POST', REVIEWS, 'application/json', { ...review, metadata: { annotations: { text: LONG_TEXT } } }],
    ['a create', 'POST', `${MAPS}?dryRun=All`, 'application/json', { ...map, metadata: { name: 'other' } }],
    ['an update', 'PUT', MAP, 'application/json', map],
    ['a merge patch', 'PATCH', MAP, 'application/merge-patch+json', map],
    ['an apply', 'PATCH', MAP, 'application/apply-patch+yaml', { apiVersion: 'v1', kind: 'ConfigMap', ...map }],
    ['an apply in YAML', 'PATCH', MAP, 'application/apply-patch+yaml', yamlBody('apiVersion: v1\nkind: ConfigMap')],
    ['a delete', 'DELETE', MAP, 'application/json', { dryRun: ['All'], text: LONG_TEXT }],
    [
      'a commit',
      'POST',
      '/apis/stowage.dev/v1/commits',
      'application/json',
      { writes: [{ ...write, patchType: 'merge', body: map }] },
    ],
  ])('SYS-19 processes one large body per turn of the event loop: %s', async (_, method, path, contentType, body) => {
    const api = await createServerFixture()
    await api.post(MAPS, { metadata: { name: 'map' } })
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const send = () => api.call(method, path, text, { 'content-type': contentType })
    expect((await send()).status).toBeLessThan(300) // the first request loads the YAML parser
    const REQUESTS = 5
    let responses = 0
    for (let request = 0; request < REQUESTS; request++) void send().then(() => responses++)
    let responsesPerTurnMax = 0
    while (responses < REQUESTS) {
      const previousResponses = responses
      await new Promise((resolve) => setImmediate(resolve))
      responsesPerTurnMax = Math.max(responsesPerTurnMax, responses - previousResponses)
    }
    expect(responsesPerTurnMax).toBe(1)
    await api.store.close()
  })
})
