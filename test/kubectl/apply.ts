// Steps for `kubectl apply` and `kubectl diff`: an object is created, left unchanged or updated, and fields that were
// removed from the file are removed from the object.
import { expect } from 'vitest'
import type { Step } from './step.ts'

const configMap = (data: string, labels = '{team: red, region: north}') =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: applied, labels: ${labels}}\ndata: ${data}\n`

const serviceAccount = (secrets: readonly string[], finalizers: readonly string[]) =>
  `apiVersion: v1
kind: ServiceAccount
metadata: {name: applied, finalizers: [${finalizers.join(', ')}]}
secrets: [${secrets.map((name) => `{name: ${name}}`).join(', ')}]
`

const claimManifest = (size: string, className: string) =>
  `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: applied}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: ${className}
  resources: {requests: {storage: ${size}}}
`

export const applySteps: readonly Step[] = [
  {
    name: 'apply creates an object, then prints unchanged and keeps its resourceVersion',
    async run({ kubectl, file }) {
      const path = await file('applied.yaml', configMap('{colour: green, size: large}'))
      expect(await kubectl.out(['apply', '-f', path])).toBe('configmap/applied created\n')
      const objectBefore = await kubectl.json('get cm applied')
      expect(await kubectl.out(['apply', '-f', path])).toBe('configmap/applied unchanged\n')
      expect(await kubectl.json('get cm applied')).toEqual(objectBefore)
    },
  },
  {
    name: 'apply changes values and removes only keys that were removed from the file',
    async run({ kubectl, file }) {
      await kubectl.out('annotate cm applied note=kept')
      const path = await file('applied.yaml', configMap('{colour: blue}', '{team: red}'))
      expect(await kubectl.out(['apply', '-f', path])).toBe('configmap/applied configured\n')
      const { data, metadata } = await kubectl.json('get cm applied')
      expect(data).toEqual({ colour: 'blue' })
      expect(metadata.labels).toEqual({ team: 'red' })
      expect(metadata.annotations.note).toBe('kept')
    },
  },
  {
    name: 'apply removes single items from merged lists',
    async run({ kubectl, file }) {
      await kubectl.out([
        'apply',
        '-f',
        await file('account.yaml', serviceAccount(['a', 'b'], ['example.com/a', 'example.com/b'])),
      ])
      await kubectl.out(['patch', 'sa', 'applied', '-p', '{"secrets":[{"name":"unmanaged"}]}'])
      await kubectl.out(['apply', '-f', await file('account.yaml', serviceAccount(['b', 'c'], ['example.com/b']))])
      const { secrets, metadata } = await kubectl.json('get sa applied')
      expect(secrets.map(({ name }: any) => name).sort()).toEqual(['b', 'c', 'unmanaged'])
      expect(metadata.finalizers).toEqual(['example.com/b'])
    },
  },
  {
    name: 'apply --dry-run=server prints the result and stores nothing',
    async run({ kubectl, file }) {
      const path = await file('dry.yaml', configMap('{colour: violet}'))
      expect(await kubectl.out(['apply', '--dry-run=server', '-f', path])).toBe(
        'configmap/applied configured (server dry run)\n',
      )
      expect(await kubectl.out('get cm applied -o jsonpath={.data.colour}')).toBe('blue')
    },
  },
  {
    name: 'diff exits with 0 if nothing differs, and with 1 and the differences otherwise',
    async run({ kubectl, file }) {
      const unchangedPath = await file('same.yaml', configMap('{colour: blue}', '{team: red}'))
      expect(await kubectl.out(['diff', '-f', unchangedPath])).toBe('')
      const changedPath = await file('other.yaml', configMap('{colour: orange}', '{team: red}'))
      const { out } = await kubectl.run(['diff', '-f', changedPath], { exit: 1 })
      expect(out).toMatch(/^-\s+colour: blue$/m)
      expect(out).toMatch(/^\+\s+colour: orange$/m)
      expect(await kubectl.out('get cm applied -o jsonpath={.data.colour}')).toBe('blue')
    },
  },
  {
    name: 'apply and replace of the output of get -o yaml leave the object unchanged',
    async run({ kubectl }) {
      const contentOf = ({ data, metadata: { labels, name } }: any) => ({ data, labels, name })
      const objectBefore = await kubectl.json('get cm applied')
      await kubectl.out('apply -f -', { stdin: await kubectl.out('get cm applied -o yaml') })
      expect(contentOf(await kubectl.json('get cm applied'))).toEqual(contentOf(objectBefore))
      const storedYaml = await kubectl.out('get pvc archive -o yaml')
      expect(await kubectl.out('replace -f -', { stdin: storedYaml })).toBe('persistentvolumeclaim/archive replaced\n')
      expect(await kubectl.out('get pvc archive -o yaml')).toBe(storedYaml)
    },
  },
  {
    name: 'apply view-last-applied prints the applied file',
    async run({ kubectl, file }) {
      const path = await file('applied.yaml', configMap('{colour: blue}', '{team: red}'))
      await kubectl.out(['apply', '-f', path])
      const stdin = await kubectl.out('apply view-last-applied cm applied')
      expect(await kubectl.out('apply -f -', { stdin })).toBe('configmap/applied unchanged\n')
    },
  },
  {
    name: 'apply of an equal quantity in other units changes nothing',
    async run({ kubectl }) {
      expect(await kubectl.out('apply -f -', { stdin: claimManifest('1024Mi', 'fast') })).toBe(
        'persistentvolumeclaim/applied created\n',
      )
      const claimBefore = await kubectl.json('get pvc applied')
      expect(claimBefore.spec.resources.requests.storage).toBe('1Gi')
      await kubectl.out('apply -f -', { stdin: claimManifest('1024Mi', 'fast') })
      expect(await kubectl.json('get pvc applied')).toEqual(claimBefore)
    },
  },
  {
    name: 'apply rejects a change to an immutable field and names it',
    async run({ kubectl }) {
      const text = await kubectl.expectError('apply -f -', { stdin: claimManifest('1Gi', 'slow') })
      expect(text).toContain('The PersistentVolumeClaim "applied" is invalid: spec: Forbidden:')
    },
  },
]
