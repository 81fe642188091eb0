// Steps for stateful sets: apply, get, scale, describe, rollout and the three ways to delete one. They need controllers, so
// test/stateful-sets.test.ts runs them.
import { expect } from 'vitest'
import type { StepContext } from './step.ts'

const manifest = (image: string) => `apiVersion: apps/v1
kind: StatefulSet
metadata: { name: db }
spec:
  replicas: 0
  selector: { matchLabels: { app: db } }
  template:
    metadata: { labels: { app: db } }
    spec: { containers: [{ name: main, image: "${image}" }] }
`
type Context = Pick<StepContext, 'kubectl'>

const apply = ({ kubectl }: Context, image: string) => kubectl.out('apply -f -', { stdin: manifest(image) })

const rolloutStatus = ({ kubectl }: Context) => kubectl.out('rollout status sts/db --timeout=60s')

/** Scales the set to one pod and deletes the set. */
async function deleteWithPod(context: Context, cascade: string): Promise<void> {
  const { kubectl } = context
  await apply(context, 'registry.example.com/db:1')
  await kubectl.out('scale sts/db --replicas=1')
  await kubectl.out(['wait', 'sts/db', '--for=jsonpath={.status.replicas}=1', '--timeout=60s'])
  await kubectl.out(['delete', 'sts', 'db', `--cascade=${cascade}`])
}

export const statefulSetSteps: readonly { readonly name: string; run(context: Context): Promise<void> }[] = [
  {
    name: 'applies a stateful set, waits for its rollout, and lists it with its short name and with all',
    async run(context) {
      const { kubectl } = context
      expect(await apply(context, 'registry.example.com/db:1')).toBe('statefulset.apps/db created\n')
      await rolloutStatus(context)
      expect(await kubectl.out('get sts db -o wide')).toMatch(
        /NAME +READY +AGE +CONTAINERS +IMAGES\ndb +0\/0 +\d+s +main +registry.example.com\/db:1/,
      )
      expect(await kubectl.out('get all')).toContain('statefulset.apps/db')
      expect(await kubectl.out('get controllerrevisions')).toMatch(/db-[b-z2-9]+ +statefulset\.apps\/db +1 /)
    },
  },
  {
    name: 'shows the history of a stateful set and undoes a rollout',
    async run(context) {
      const { kubectl } = context
      await apply(context, 'registry.example.com/db:2')
      await rolloutStatus(context)
      expect(await kubectl.out('rollout history sts/db')).toMatch(/\n1 +<none>\n2 +<none>/)
      expect(await kubectl.out('rollout history sts/db --revision=1')).toContain('registry.example.com/db:1')
      expect(await kubectl.out('rollout undo sts/db')).toContain('rolled back')
      await rolloutStatus(context)
      expect(await kubectl.out('rollout history sts/db')).toMatch(/\n2 +<none>\n3 +<none>/)
      expect(await kubectl.out('get sts db -o wide')).toContain('registry.example.com/db:1')
      expect(await kubectl.out('rollout restart sts/db')).toContain('restarted')
    },
  },
  {
    name: 'scales a stateful set with and without a condition, and describes it',
    async run({ kubectl }) {
      expect(await kubectl.out('scale sts/db --current-replicas=0 --replicas=1')).toBe('statefulset.apps/db scaled\n')
      expect(await kubectl.expectError('scale sts/db --current-replicas=5 --replicas=9')).toContain(
        'Expected replicas to be 5',
      )
      await kubectl.out(['wait', 'sts/db', '--for=jsonpath={.status.replicas}=1', '--timeout=60s'])
      const text = (await kubectl.out('describe sts db')).replace(/\s+/g, ' ')
      for (const part of ['Replicas: 1 desired | 1 total', 'Update Strategy: RollingUpdate'])
        expect(text).toContain(part)
    },
  },
  {
    name: 'rejects a change of an immutable field of a stateful set',
    async run({ kubectl }) {
      const patch = JSON.stringify({ spec: { serviceName: 'other' } })
      expect(await kubectl.expectError(['patch', 'sts', 'db', '-p', patch])).toContain('field is immutable')
    },
  },
  {
    name: 'deletes a stateful set with its pods in the foreground and in the background, and without them',
    async run(context) {
      const { kubectl } = context
      await kubectl.out('delete sts db --cascade=foreground')
      expect(await kubectl.out('get pods,controllerrevisions -l app=db')).toBe('')
      await deleteWithPod(context, 'background')
      await kubectl.out('wait pod/db-0 --for=delete --timeout=60s')
      await deleteWithPod(context, 'orphan')
      expect((await kubectl.json('get pod db-0')).metadata.ownerReferences).toBeUndefined()
      await kubectl.out('delete pod db-0')
      await kubectl.out('delete controllerrevisions -l app=db')
    },
  },
]
