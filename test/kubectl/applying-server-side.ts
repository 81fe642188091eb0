// apply --server-side: the server merges and tracks field owners.
import { expect } from 'vitest'
import type { Step } from './step.ts'

const settings = (data: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: owned}\ndata: ${data}\n`
const as = (manager: string) => `apply --server-side --field-manager=${manager} -f -`

export const applyingServerSide: readonly Step[] = [
  {
    name: 'apply --server-side creates, and changes nothing the second time',
    async run({ kubectl }) {
      const stdin = settings('{colour: green, size: large}')
      expect(await kubectl.out('apply --server-side -f -', { stdin })).toBe('configmap/owned serverside-applied\n')
      const before = await kubectl.json('get cm owned')
      await kubectl.out('apply --server-side -f -', { stdin })
      expect(await kubectl.json('get cm owned')).toEqual(before)
    },
  },
  {
    name: 'apply --server-side removes what its manager left out',
    async run({ kubectl }) {
      await kubectl.out('apply --server-side -f -', { stdin: settings('{colour: green}') })
      expect((await kubectl.json('get cm owned')).data).toEqual({ colour: 'green' })
    },
  },
  {
    name: 'apply --server-side of another manager’s field is a conflict that names both, until forced',
    async run({ kubectl }) {
      const stdin = settings('{colour: blue}')
      const text = await kubectl.refusal(as('rival'), { stdin })
      expect(text).toContain('Apply failed with 1 conflict: conflict with "kubectl": .data.colour')
      expect((await kubectl.json('get cm owned')).data).toEqual({ colour: 'green' })
      await kubectl.out(`${as('rival')} --force-conflicts`, { stdin })
      expect((await kubectl.json('get cm owned')).data).toEqual({ colour: 'blue' })
    },
  },
  {
    name: 'apply --server-side of other fields leaves those of others alone',
    async run({ kubectl }) {
      await kubectl.out(as('friend'), { stdin: settings('{shape: round}') })
      expect((await kubectl.json('get cm owned')).data).toEqual({ colour: 'blue', shape: 'round' })
      await kubectl.out(as('friend'), { stdin: settings('{}') })
      expect((await kubectl.json('get cm owned')).data).toEqual({ colour: 'blue' })
    },
  },
  {
    name: 'apply --server-side --dry-run=server stores nothing',
    async run({ kubectl }) {
      const out = await kubectl.out(`${as('rival')} --dry-run=server`, { stdin: settings('{colour: red}') })
      expect(out).toBe('configmap/owned serverside-applied (server dry run)\n')
      expect((await kubectl.json('get cm owned')).data).toEqual({ colour: 'blue' })
    },
  },
  {
    name: 'apply --server-side takes over an object that was applied before without it',
    async run({ kubectl }) {
      const manifest = (data: string) => settings(data).replace('name: owned', 'name: moved')
      await kubectl.out('apply -f -', { stdin: manifest('{colour: green, size: large}') })
      await kubectl.out('apply --server-side -f -', { stdin: manifest('{colour: green}') })
      expect((await kubectl.json('get cm moved')).data.colour).toBe('green')
    },
  },
]
