// Records events and elects a leader with the rules of each component that may create events or leases.
import { describe, expect, it } from 'vitest'
import { configMapKind } from '../api/kinds/config-map/config-map.ts'
import { COMPONENT_RULES, type Component, rulesOf } from '../apiserver/rbac/component-rules.ts'
import { createServerFixture } from '../apiserver/server.fixture.ts'
import { silentLog } from '../base/log.ts'
import { createEventRecorder } from './events.ts'
import { createLeaderElection } from './leader-election.ts'

const COMPONENTS = Object.keys(COMPONENT_RULES) as Component[]
const componentsWithRule = (verb: string, resource: string) =>
  COMPONENTS.filter((component) =>
    rulesOf(component).some(({ verbs, resources }) => verbs.includes(verb) && resources.includes(resource)),
  )

describe.each(componentsWithRule('create', 'events'))('the event recorder of %s', (component) => {
  it('SYS-9 creates events, and increments the count of a repeated event', async () => {
    const server = await createServerFixture()
    const { clock } = server
    const client = server.clientOf(component)
    const abort = new AbortController()
    const recorder = createEventRecorder({ client, clock, random: Math.random, component })
    const recorderRun = recorder.run(abort.signal)
    const objectNamed = (name: string) => ({ metadata: { namespace: 'default', name, uid: name } })
    const record = (name: string) =>
      recorder.record(configMapKind, objectNamed(name), { type: 'Warning', reason: 'Failed', message: 'no' })
    const listCounts = async () =>
      (await server.get('/api/v1/events')).json.items.map(({ count }: { count: number }) => count).sort()
    record('a')
    record('b')
    await server.waitUntil(async () => (await listCounts()).length === 2, 'two events')
    record('a')
    await server.waitUntil(async () => (await listCounts()).join() === '1,2', 'a repeated event')
    abort.abort()
    await server.advanceUntilSettled(recorderRun)
    await server.store.close()
  })
})

const ELECTING_COMPONENTS = componentsWithRule('create', 'leases.coordination.k8s.io').filter(
  (component) => component !== 'node',
)

describe.each(ELECTING_COMPONENTS)('the leader election of %s', (component) => {
  it('SYS-9 acquires the lease, fences a commit with it, renews it and releases it', async () => {
    const server = await createServerFixture()
    const { clock } = server
    const client = server.clientOf(component)
    const abort = new AbortController()
    const random = () => 0.5
    const election = createLeaderElection({
      client,
      clock,
      random,
      log: silentLog,
      namespace: 'kube-system',
      name: 'l',
      identity: 'p',
    })
    const getLease = async () => (await server.get(`/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/l`)).json
    let isFenced = false
    const lead = async (term: AbortSignal) => {
      await client.commit(election.fence())
      isFenced = true
      await new Promise<void>((resolve) => term.addEventListener('abort', () => resolve(), { once: true }))
    }
    const electionRun = election.run(lead, abort.signal)
    await server.waitUntil(() => isFenced, 'a fenced write')
    const { renewTime } = (await getLease()).spec
    await server.waitUntil(async () => (await getLease()).spec.renewTime !== renewTime, 'a renewal')
    abort.abort()
    await server.advanceUntilSettled(electionRun)
    expect((await getLease()).spec.holderIdentity ?? '').toBe('')
    await server.store.close()
  })
})
