// wait: for a condition, a value, or deletion; and timeouts.
import { expect } from 'vitest'
import type { Step } from './step.ts'

export const waiting: readonly Step[] = [
  {
    name: 'wait --for=condition returns at once when it holds',
    async run({ kubectl }) {
      expect(await kubectl.out('wait --for=condition=Ready node/node-a --timeout=30s')).toBe(
        'node/node-a condition met\n',
      )
    },
  },
  {
    name: 'wait --for=condition returns when it comes to hold',
    needs: '--subresource',
    async run({ kubectl }) {
      const waiting = kubectl.out('wait --for=condition=Tested node/node-a --timeout=60s')
      const condition = { type: 'Tested', status: 'True', reason: 'Done', message: 'done' }
      await kubectl.out([
        'patch',
        'node',
        'node-a',
        '--subresource=status',
        '-p',
        JSON.stringify({ status: { conditions: [condition] } }),
      ])
      expect(await waiting).toBe('node/node-a condition met\n')
    },
  },
  {
    name: 'wait --for=jsonpath returns when the value is there',
    needs: 'wait for a jsonpath',
    async run({ kubectl }) {
      const waiting = kubectl.out('wait --for=jsonpath={.data.state}=ready cm/settings --timeout=60s')
      await kubectl.out(['patch', 'cm', 'settings', '-p', '{"data":{"state":"ready"}}'])
      expect(await waiting).toBe('configmap/settings condition met\n')
    },
  },
  {
    name: 'wait --for=delete returns when the object is gone',
    needs: 'wait for what is gone',
    async run({ kubectl }) {
      const stdin = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: brief, finalizers: [example.com/hold]}\n'
      await kubectl.out('create -f -', { stdin })
      await kubectl.out('delete cm brief --wait=false')
      const waiting = kubectl.run('wait --for=delete cm/brief --timeout=60s')
      await kubectl.out(['patch', 'cm', 'brief', '--type=merge', '-p', '{"metadata":{"finalizers":null}}'])
      await waiting
      await kubectl.refusal('get cm brief')
    },
  },
  {
    name: 'wait gives up after its timeout',
    async run({ kubectl }) {
      const text = await kubectl.refusal('wait --for=condition=Never node/node-a --timeout=1s')
      expect(text).toContain('timed out waiting for the condition')
    },
  },
]
