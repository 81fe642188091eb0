import { describe, expect, it } from 'vitest'
import { LAST_FAILURE } from '../../volumes/names.ts'
import { type CapacityFixture, createCapacityFixture } from './capacity.fixture.ts'

const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const FAILURE_MESSAGE =
  'GetCapacity for class "bad" failed: rpc error: code = InvalidArgument desc = unknown parameter "fsTyp"'
const failGetCapacity = (effect: object) => [{ method: 'GetCapacity', effect: { do: 'fail', ...effect } }] as never
const INVALID_PARAMETER = { code: 'INVALID_ARGUMENT', message: 'unknown parameter "fsTyp"' }

async function createFixture(): Promise<CapacityFixture> {
  const fixture = await createCapacityFixture()
  await fixture.createNode('n1', { zone: 'a' })
  await fixture.createNode('n2', { zone: 'b' })
  await fixture.createClass('bad', { fsTyp: 'xfs' })
  return fixture
}

const createClaim = ({ server }: CapacityFixture, name: string, storageClassName = 'bad') =>
  server.post(CLAIMS, {
    metadata: { name },
    spec: { accessModes: ['ReadWriteOnce'], storageClassName, resources: { requests: { storage: '1Gi' } } },
  })

const readFailure = async ({ server }: CapacityFixture, name: string): Promise<string | undefined> =>
  (await server.get(`${CLAIMS}/${name}`)).json.metadata.annotations?.[LAST_FAILURE]

describe('a class for which GetCapacity fails', () => {
  it('is reported once on the claims that wait for it, including claims created later', async () => {
    const fixture = await createFixture()
    await createClaim(fixture, 'earlier')
    await createClaim(fixture, 'other', 'good')
    fixture.fake.script.setRules(failGetCapacity(INVALID_PARAMETER))
    await fixture.start()
    await createClaim(fixture, 'later')
    await fixture.settle()
    await fixture.advance(60_000)
    for (const name of ['earlier', 'later']) expect(await readFailure(fixture, name)).toBe(FAILURE_MESSAGE)
    expect(await readFailure(fixture, 'other')).toBeUndefined()
    expect(fixture.events).toEqual(['earlier', 'later'].map((name) => [name, 'ProvisioningFailed', FAILURE_MESSAGE]))
  })

  it('is no longer reported once the driver accepts it, or the class is deleted', async () => {
    const fixture = await createFixture()
    await createClaim(fixture, 'data')
    fixture.fake.script.setRules(failGetCapacity(INVALID_PARAMETER))
    await fixture.start()
    expect(await readFailure(fixture, 'data')).toBe(FAILURE_MESSAGE)
    await fixture.deleteClass('bad')
    await fixture.settle()
    expect(await readFailure(fixture, 'data')).toBeUndefined()
    await fixture.createClass('bad', { fsTyp: 'xfs' })
    await fixture.settle()
    expect(await readFailure(fixture, 'data')).toBe(FAILURE_MESSAGE)
    fixture.fake.script.setRules([])
    await fixture.advance(300_000)
    expect(await readFailure(fixture, 'data')).toBeUndefined()
  })

  it('is not reported if the driver accepts it in one segment, or is unavailable', async () => {
    const fixture = await createFixture()
    await createClaim(fixture, 'data')
    fixture.fake.script.setRules(failGetCapacity({ code: 'UNAVAILABLE' }))
    await fixture.start()
    expect(await readFailure(fixture, 'data')).toBeUndefined()
    fixture.fake.script.setRules([])
    await fixture.advance(300_000)
    fixture.fake.script.setRules([
      { method: 'GetCapacity', nth: 1, effect: { do: 'fail', ...INVALID_PARAMETER } },
    ] as never)
    await fixture.advance(60_000)
    expect(await readFailure(fixture, 'data')).toBeUndefined()
  })
})
