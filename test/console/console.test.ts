// Tests the console in a real browser, on a system with real volumes. The tests compare the page with the output of kubectl,
// and check the effect of each action. src/console has the tests of its HTTP interface.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser, Locator, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from '../allowed-skips.ts'
import { runStowage } from '../helpers/run-stowage.ts'
import { browserSkipReason, findAccessibilityProblems, launchBrowser, type OpenPage, openPage } from './browser.ts'
import {
  type ConsoleProcess,
  claimManifest,
  podManifest,
  startConsole,
  startTestSystem,
  type TestSystem,
} from './console.fixture.ts'

const skipMessage = browserSkipReason() ?? skipReason(await probeThisMachine(), ['loop', 'mount'])
const SCREENS = ['Overview', 'Claims', 'Capacity', 'Nodes', 'Operations', 'Quotas', 'Drivers', 'Bulk']
const HOSTILE_TEXT = '<img src=x onerror="window.attacked = true"><script>window.attacked = true</script>'

/** Runs in the page. Returns the elements that make the document wider than the window, except those inside a scrolling element. */
const FIND_OVERFLOW = `(() => {
  const scrolls = (element) => element && (getComputedStyle(element).overflowX !== 'visible' || scrolls(element.parentElement))
  if (document.documentElement.scrollWidth <= innerWidth) return []
  return [...document.querySelectorAll('body *')]
    .filter((element) => element.getBoundingClientRect().right > innerWidth && !scrolls(element.parentElement))
    .map(({ outerHTML }) => outerHTML.slice(0, 160))
})()`

describe.skipIf(skipMessage)(`the console in a browser${skipMessage ? ` (skipped: ${skipMessage})` : ''}`, () => {
  let system: TestSystem
  let console: ConsoleProcess
  let browser: Browser
  const openPages: OpenPage[] = []

  beforeAll(async () => {
    system = await startTestSystem()
    console = await startConsole(system.server.kubeconfig)
    browser = await launchBrowser()
    await system.apply(
      claimManifest('orders', '1Gi') +
        podManifest('shop', 'orders') +
        claimManifest('huge', '900Gi') +
        podManifest('giant', 'huge') +
        claimManifest('typo', '5Gi', ', storageClassName: gold'),
    )
    await system.kubectl('wait', '--for=condition=Ready', 'pod/shop', '--timeout=60s')
  })
  afterEach(async () => {
    const errors = openPages.flatMap((opened) => opened.errors)
    await Promise.all(openPages.splice(0).map((opened) => opened.close()))
    expect(errors).toEqual([])
  })
  afterAll(async () => {
    await browser?.close()
    await console?.stop()
    await system?.remove()
  })

  async function open(url = console.url, options: Parameters<typeof openPage>[2] = {}): Promise<Page> {
    const opened = await openPage(browser, url, options)
    openPages.push(opened)
    return opened.page
  }

  async function show(page: Page, screen: string): Promise<void> {
    await page.getByRole('navigation', { name: 'Screens' }).getByRole('link', { name: screen, exact: true }).click()
    await page.getByRole('heading', { level: 1, name: screen }).waitFor()
  }

  const rowOf = (page: Page, name: string): Locator =>
    page
      .getByRole('grid')
      .getByRole('row')
      .filter({ has: page.getByRole('gridcell').getByText(name, { exact: true }) })

  async function openClaim(page: Page, name: string): Promise<Locator> {
    await show(page, 'Claims')
    await rowOf(page, name).click()
    const drawer = page.getByRole('region', { name: `Claim default/${name}` })
    await drawer.waitFor()
    return drawer
  }

  it('SYS-13 shows the claims that kubectl lists, and follows their creation, change and deletion', async () => {
    const page = await open()
    await show(page, 'Claims')
    for (const [name, status] of [
      ['orders', 'Bound'],
      ['huge', 'Pending'],
      ['typo', 'Pending'],
    ] as const)
      await rowOf(page, name).getByText(status).waitFor()
    const names = (await system.kubectl('get', 'pvc', '-o', 'name')).trim().split('\n')
    expect(await page.getByRole('grid').getAttribute('aria-rowcount')).toBe(String(names.length + 1)) // the header is a row too
    await system.apply(claimManifest('late', '2Gi', ', storageClassName: directory'))
    await rowOf(page, 'late').getByText('Bound').waitFor()
    await system.kubectl('delete', 'pvc', 'late')
    await rowOf(page, 'late').waitFor({ state: 'detached' })
    expect(await page.getByRole('grid').getAttribute('aria-rowcount')).toBe(String(names.length + 1))
  })

  it('SYS-13 PLUS-1 shows the cause that `stowage why` prints, in the row and as a tree', async () => {
    const page = await open()
    const { stdout } = await runStowage('why', 'pvc/typo', '-o', 'json', '--kubeconfig', system.server.kubeconfig)
    let leaf = JSON.parse(stdout)
    while (leaf.children?.length > 0) leaf = leaf.children[0]
    await show(page, 'Claims')
    await rowOf(page, 'typo').getByText(leaf.message).waitFor()
    const drawer = await openClaim(page, 'typo')
    await drawer.getByRole('tab', { name: 'Why' }).click()
    await drawer.getByRole('tabpanel').getByText(leaf.message).waitFor()
  })

  it('SYS-13 PLUS-6 shows the timeline, events, YAML and related objects of a claim', async () => {
    const page = await open()
    const drawer = await openClaim(page, 'orders')
    for (const relatedName of ['shop', 'node-']) await drawer.getByText(relatedName).first().waitFor()
    await drawer.getByRole('tab', { name: 'Timeline' }).click()
    await drawer.getByRole('img', { name: /^Timeline with \d+ entries/ }).waitFor()
    await drawer.getByRole('tab', { name: 'Events' }).click()
    await drawer.getByRole('tabpanel').getByText('ProvisioningSucceeded').first().waitFor()
    await drawer.getByRole('tab', { name: 'YAML' }).click()
    await drawer.getByRole('tabpanel').getByText('accessModes').first().waitFor()
  })

  it('SYS-13 expands a claim as its preview states, and disables the action for a smaller size', async () => {
    const page = await open()
    const drawer = await openClaim(page, 'orders')
    await drawer.getByRole('button', { name: /^Expand/ }).click()
    const dialog = page.getByRole('dialog', { name: 'Expand default/orders' })
    const size = dialog.getByLabel('New size')
    const confirm = dialog.getByRole('button', { name: 'Expand', exact: true })
    await size.fill('512Mi')
    expect(await confirm.isDisabled()).toBe(true)
    await size.fill('2Gi')
    await dialog.getByText(/kubectl .*patch .*orders/).waitFor()
    await confirm.click()
    await dialog.waitFor({ state: 'detached' })
    await rowOf(page, 'orders').getByText('2Gi').waitFor()
    await system.kubectl('wait', '--for=jsonpath={.status.capacity.storage}=2Gi', 'pvc/orders', '--timeout=60s')
  })

  it('SYS-13 requires the name of a claim before a deletion that loses its data', async () => {
    await system.apply(claimManifest('scratch', '1Gi') + podManifest('writer', 'scratch'))
    await system.kubectl('wait', '--for=condition=Ready', 'pod/writer', '--timeout=60s')
    await system.kubectl('delete', 'pod', 'writer')
    const page = await open()
    const drawer = await openClaim(page, 'scratch')
    await drawer.getByRole('button', { name: /^Delete/ }).click()
    const dialog = page.getByRole('dialog', { name: 'Delete default/scratch' })
    const confirm = dialog.getByRole('button', { name: 'Delete', exact: true })
    expect(await confirm.isDisabled()).toBe(true)
    await dialog.getByLabel(/Type scratch/).fill('scratch')
    await confirm.click()
    await rowOf(page, 'scratch').waitFor({ state: 'detached' })
    expect(await system.kubectl('get', 'pvc', '-o', 'name')).not.toContain('scratch')
  })

  it('SYS-13 offers a viewer no actions, and shows everything else', async () => {
    const { stdout } = await runStowage('kubeconfig', '--user', 'viewer', '--data-dir', system.server.dataDir)
    const file = join(system.server.dataDir, 'viewer.kubeconfig')
    await writeFile(file, stdout, { mode: 0o600 })
    const viewerConsole = await startConsole(file)
    try {
      const page = await open(viewerConsole.url)
      const drawer = await openClaim(page, 'orders')
      await drawer.getByText('You can view this claim, but not change it.').waitFor()
      expect(await drawer.getByRole('button', { name: /Expand|Delete|Retry/ }).count()).toBe(0)
      await drawer.getByRole('tab', { name: 'Why' }).waitFor()
      await page.close() // the page would log failed requests after its console has stopped
    } finally {
      await viewerConsole.stop()
    }
  })

  it('SYS-13 shows markup in messages as text', async () => {
    const claim = JSON.parse(await system.kubectl('get', 'pvc', 'typo', '-o', 'json'))
    const { name, namespace, uid } = claim.metadata
    await system.server.call('POST', '/api/v1/namespaces/default/events', {
      metadata: { name: 'hostile', namespace: 'default' },
      involvedObject: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', name, namespace, uid },
      type: 'Warning',
      reason: 'Hostile',
      message: HOSTILE_TEXT,
      firstTimestamp: new Date().toISOString(),
      lastTimestamp: new Date().toISOString(),
      count: 1,
    })
    await system.kubectl('annotate', 'pvc', 'typo', `note=${HOSTILE_TEXT}`)
    const page = await open()
    const drawer = await openClaim(page, 'typo')
    await drawer.getByRole('tab', { name: 'Events' }).click()
    await drawer.getByRole('tabpanel').getByText(HOSTILE_TEXT).first().waitFor()
    await drawer.getByRole('tab', { name: 'YAML' }).click()
    await drawer.getByRole('tabpanel').getByText('onerror').first().waitFor()
    expect(await page.evaluate('[window.attacked, document.images.length]')).toEqual([undefined, 0])
  })

  it('SYS-13 updates seven tabs of one browser', async () => {
    const first = await open()
    await show(first, 'Claims')
    const address = (await first.evaluate('location.href')) as string
    const tabs = await Promise.all(Array.from({ length: 6 }, () => first.context().newPage()))
    await Promise.all(tabs.map((tab) => tab.goto(address)))
    await system.apply(claimManifest('seventh', '1Gi', ', storageClassName: directory'))
    for (const tab of [first, ...tabs]) {
      await tab.bringToFront()
      await rowOf(tab, 'seventh').getByText('Bound').waitFor()
    }
    await system.kubectl('delete', 'pvc', 'seventh')
  })

  it('SYS-13 prompts for the URL with the token if the token is wrong or missing', async () => {
    const { origin } = new URL(console.url)
    for (const fragment of ['', '#token=wrong']) {
      const opened = await openPage(browser, `${origin}/${fragment}`)
      await opened.page.getByRole('heading', { name: 'Stowage console' }).waitFor()
      await opened.page.getByText('stowage console --open').waitFor()
      expect(await opened.page.getByRole('grid').count()).toBe(0)
      await opened.close() // the rejected requests are errors of this page
    }
  })

  describe.each(['light', 'dark'] as const)('in %s colours', (colorScheme) => {
    it('SYS-13 has no accessibility problem on any screen, in the drawer and in a dialog', async () => {
      const page = await open(console.url, { colorScheme })
      for (const screen of SCREENS) {
        await show(page, screen)
        await page.locator('[aria-busy=true]').waitFor({ state: 'detached' })
        expect(await findAccessibilityProblems(page), screen).toEqual([])
      }
      const drawer = await openClaim(page, 'orders')
      expect(await findAccessibilityProblems(page), 'drawer').toEqual([])
      await drawer.getByRole('button', { name: /^Expand/ }).click()
      await page.getByRole('dialog').waitFor()
      expect(await findAccessibilityProblems(page), 'dialog').toEqual([])
    })
  })

  it('SYS-13 fits every screen into 320 pixels, the width of a phone or of 1280 pixels at 400 % zoom', async () => {
    const page = await open(console.url, { viewport: { width: 320, height: 640 } })
    for (const screen of SCREENS) {
      await show(page, screen)
      expect(await page.evaluate(FIND_OVERFLOW), screen).toEqual([])
    }
  })

  it('SYS-13 works with the keyboard: search, move, open, close and help', async () => {
    const page = await open()
    await show(page, 'Claims')
    await rowOf(page, 'orders').waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('orders')
    await rowOf(page, 'huge').waitFor({ state: 'detached' })
    await page.keyboard.press('Escape')
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.getByRole('region', { name: /^Claim default\// }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('region', { name: /^Claim default\// }).waitFor({ state: 'detached' })
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: /Keyboard/ }).waitFor()
  })

  // The last test, because it restarts the server.
  it('SYS-13 reports that the API server does not respond, and continues without duplicate rows after its restart', async () => {
    const opened = await openPage(browser, console.url)
    const { page } = opened
    await show(page, 'Claims')
    const grid = page.getByRole('grid')
    await rowOf(page, 'orders').waitFor()
    const rowCount = await grid.getAttribute('aria-rowcount')
    const restart = system.restart()
    await page.getByText(/The API server does not respond/).waitFor()
    await restart
    await page.getByText(/The API server does not respond/).waitFor({ state: 'detached' })
    await system.apply(claimManifest('after', '1Gi', ', storageClassName: directory'))
    await rowOf(page, 'after').getByText('Bound').waitFor()
    expect(await grid.getAttribute('aria-rowcount')).toBe(String(Number(rowCount) + 1))
    await opened.close() // failed requests during the restart are errors of this page
  })
})
