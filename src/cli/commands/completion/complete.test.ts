import { describe, expect, it } from 'vitest'
import { manualClock } from '../../../base/manual-clock.ts'
import { createProgram } from '../../program.ts'
import { complete } from './complete.ts'

const program = createProgram({
  clock: manualClock(),
  random: () => 0.5,
  signal: new AbortController().signal,
  write: () => {},
})
const claimsByNamespace: Record<string, string[]> = { default: ['orders', 'archive'], shop: ['cart'] }

async function completeWords(...words: string[]): Promise<readonly string[] | 'file'> {
  const completion = await complete(program, {
    words,
    objectNames: (kubeconfig) => ({
      namespaces: async () => (kubeconfig === 'other' ? ['elsewhere'] : ['default', 'shop']),
      claims: async (namespace = 'default') => claimsByNamespace[namespace] ?? [],
      attributesClasses: async () => ['gold', 'silver'],
      csiDrivers: async () => ['disks.example.com'],
      tokens: async () => ['abcdef'],
      objects: async (kind, namespace = 'default') =>
        (kind === 'pvc' ? (claimsByNamespace[namespace] ?? []) : kind === 'node' ? ['node-1'] : []).map(
          (name) => `${kind}/${name}`,
        ),
    }),
  })
  return completion.is === 'file' ? 'file' : completion.values
}

describe('complete', () => {
  it('completes commands, without hidden ones', async () => {
    expect(await completeWords('')).toEqual(expect.arrayContaining(['up', 'grow', 'completion', 'help']))
    expect(await completeWords('')).not.toContain('__complete')
    expect(await completeWords('gr')).toEqual(['grow'])
    expect(await completeWords('help', 'mi')).toEqual(['migrate'])
    expect(await completeWords('completion', '')).toEqual(['bash', 'zsh', 'fish', 'kubectl'])
    expect(await completeWords('nonsense', '')).toEqual([])
  })

  it('completes subcommands, their flags and values', async () => {
    expect(await completeWords('rbac', '')).toEqual(['print', '--help'])
    expect(await completeWords('rbac', 'nonsense', '')).toEqual([])
    expect(await completeWords('rbac', 'print', '--comp')).toEqual(['--component'])
    expect(await completeWords('rbac', 'print', '--component', 'pro')).toEqual(['provisioner'])
  })

  it("completes a command's flags", async () => {
    expect(await completeWords('grow', '--na')).toEqual(['--namespace'])
    expect(await completeWords('grow', '--dry-run', '--he')).toEqual(['--help'])
  })

  it('completes the values of a flag, separated by a space or an equals sign', async () => {
    expect(await completeWords('grow', '--output', '')).toEqual(['text', 'json', 'yaml'])
    expect(await completeWords('grow', '--output=j')).toEqual(['json'])
    expect(await completeWords('grow', '--output', '=', 'j')).toEqual(['json'])
    expect(await completeWords('grow', '--output', '=')).toEqual(['text', 'json', 'yaml'])
    expect(await completeWords('grow', '--kubeconfig', 'x')).toBe('file')
    expect(await completeWords('grow', '--parallel', '')).toEqual([])
  })

  it('completes namespaces, classes, drivers, and claims that are not named yet', async () => {
    expect(await completeWords('grow', '-n', 's')).toEqual(['shop'])
    expect(await completeWords('grow', '--kubeconfig', 'other', '--namespace', '')).toEqual(['elsewhere'])
    expect(await completeWords('migrate', '--to', '')).toEqual(['gold', 'silver'])
    expect(await completeWords('doctor', '--driver', '')).toEqual(['disks.example.com'])
    expect(await completeWords('doctor', '--csi-address', '')).toBe('file')
    expect(await completeWords('store', 'check', '--backup', '')).toBe('file')
    expect(await completeWords('token', '')).toEqual(['create', 'list', 'delete'])
    expect(await completeWords('token', 'delete', '')).toEqual(['abcdef'])
    expect(await completeWords('token', 'create', '')).toEqual([])
    expect(await completeWords('capacity-cleanup', '--driver-name', 'd')).toEqual(['disks.example.com'])
    expect(await completeWords('df', '--by', 'n')).toEqual(['node', 'namespace'])
    expect(await completeWords('grow', '')).toEqual(['orders', 'archive'])
    expect(await completeWords('grow', 'orders', '')).toEqual(['archive'])
    expect(await completeWords('grow', '--namespace', 'shop', 'c')).toEqual(['cart'])
  })

  it('completes nodes of the cluster', async () => {
    expect(await completeWords('simulate', '--drain', '')).toEqual(['node-1'])
    expect(await completeWords('simulate', '--node-group', '')).toBe('file')
  })

  it("completes the kind, then an object's name", async () => {
    expect(await completeWords('retry', 'p')).toEqual(['pvc/', 'pv/', 'pod/'])
    expect(await completeWords('retry', 'pvc/')).toEqual(['pvc/orders', 'pvc/archive'])
    expect(await completeWords('retry', '--namespace', 'shop', 'pvc/c')).toEqual(['pvc/cart'])
    expect(await completeWords('retry', 'pvc/orders', '')).toEqual([])
    expect(await completeWords('why', '')).toEqual(['pvc/', 'pod/', 'pv/', 'node/'])
  })
})
