// Runs Helm on the chart: the program that STOWAGE_HELM names, or `helm` on PATH.
import { execFile } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { parseAllDocuments } from 'yaml'
import { programSkipReason } from './programs.ts'

const ROOT = new URL('../..', import.meta.url).pathname
const HELM = process.env.STOWAGE_HELM || 'helm'

const CHART = join(ROOT, 'charts', 'stowage')

export const helmSkipReason = (): string | undefined => programSkipReason(HELM, ['version'])

/** The namespace and the name of the release in rendered manifests. */
export const RELEASE = 'stowage'

/** Returns the sets of values for which the chart is tested, by name: `sidecar` for ci/sidecar-values.yaml. */
export async function listValueSets(): Promise<readonly string[]> {
  const names = await readdir(join(CHART, 'ci'))
  return names.map((name) => name.replace(/-values\.yaml$/, '')).sort()
}

const valuesFileOf = (set: string): string => join(CHART, 'ci', `${set}-values.yaml`)

interface HelmResult {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs `helm COMMAND` for a set of values. Kubernetes is not contacted. */
export async function runHelm(
  command: 'lint' | 'template',
  set: string,
  flags: readonly string[] = [],
): Promise<HelmResult> {
  const target = command === 'lint' ? ['--strict', CHART] : [RELEASE, CHART, '--kube-version', '1.34.0']
  const args = [command, ...target, '--namespace', RELEASE, '--values', valuesFileOf(set), ...flags]
  return promisify(execFile)(HELM, args, { maxBuffer: 2 ** 24, env: { ...process.env, KUBECONFIG: '/dev/null' } }).then(
    (result) => ({ ...result, code: 0 }),
    (error) => error,
  )
}

/** Returns the manifests of a set of values as YAML. Throws with Helm's message if they cannot be rendered. */
export async function renderChart(set: string): Promise<string> {
  const { code, stdout, stderr } = await runHelm('template', set)
  if (code !== 0) throw new Error(stderr)
  return stdout
}

export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: Record<string, string> }
  readonly [field: string]: any
}

export const parseManifests = (text: string): Manifest[] =>
  parseAllDocuments(text).flatMap((document) => (document.toJS() as Manifest | null) ?? [])
