// Every kubectl on this machine runs one script (kubectl-script.ts) against its own server. A failure names the kubectl
// and the step. The servers run concurrently, the steps of one in order.
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildKubeconfig } from '../src/processes/kubeconfig.ts'
import { createDaemon } from './helpers/daemon.ts'
import { findKubectls, type KubectlProgram } from './helpers/kubectls.ts'
import { type RunningServer, startServer } from './helpers/server.ts'
import { createKubectl } from './kubectl/kubectl.ts'
import { canTake, type StepContext } from './kubectl/step.ts'
import { SCRIPT } from './kubectl-script.ts'

const kubectls = await findKubectls()

if (kubectls.length === 0) {
  it.skipIf(process.env.CI !== 'true')('SYS-2 needs a kubectl on PATH, or some named in STOWAGE_KUBECTLS', () => {
    expect(kubectls).not.toEqual([])
  })
}

describe.concurrent.each(kubectls)('kubectl $version', (program) => {
  let setup: Ground
  beforeAll(async () => {
    setup = await openGround(program)
  })
  afterAll(() => setup?.close())

  for (const step of SCRIPT.filter((candidate) => canTake(candidate, program.minor))) {
    it.sequential(`SYS-2 ${step.name}`, () => step.run(setup.context))
  }
})

interface Ground {
  readonly context: StepContext
  close(): Promise<void>
}

/** A server, and a home directory for one kubectl and its files. */
async function openGround(program: KubectlProgram): Promise<Ground> {
  const dir = await mkdtemp(join(tmpdir(), 'stowage-kubectl-'))
  const server = await startServer({ dataDir: join(dir, 'data'), command: 'server' })
  // Deletions need these controllers; the others would bind the claims that the script inspects.
  const controllers = await createDaemon({
    name: 'controllers',
    args: ['controllers', '--kubeconfig', server.kubeconfig, '--controllers', 'garbage,namespaces,protection'],
    isReady: ({ stderr }) => stderr.includes('"started"'),
  })
  await controllers.start()
  const home = join(dir, 'home')
  await mkdir(home)
  const viewerConfig = join(dir, 'viewer.kubeconfig')
  await writeFile(viewerConfig, await viewerKubeconfig(server))
  const as = (kubeconfig: string) => createKubectl({ program, kubeconfig, namespace: 'shop', home })
  return {
    context: {
      kubectl: as(server.kubeconfig),
      viewer: as(viewerConfig),
      async file(name, text) {
        const path = join(dir, name)
        await writeFile(path, text)
        return path
      },
    },
    async close() {
      await controllers.stop()
      await server.stop()
      await rm(dir, { recursive: true })
    },
  }
}

async function viewerKubeconfig({ dataDir, url, ca }: RunningServer): Promise<string> {
  const read = (name: string) => readFile(join(dataDir, 'pki', name), 'utf8')
  const credential = { user: 'stowage-viewer', cert: await read('viewer.crt'), key: await read('viewer.key') }
  return buildKubeconfig({ server: url, caCert: ca, credential })
}
