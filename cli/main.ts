/**
 * The command line, `shipmate` and `kubectl shipmate`. `sidecar` and `install-agent` do not come here: bin/shipmate.cjs.
 */
import { manifest } from './package.ts'
import { type Listed, runProgram } from './program.ts'

const commands: Readonly<Record<string, Listed>> = {
  demo: {
    summary: "show an app's life on an embedded cluster, with nothing else installed",
    load: () => import('./commands/demo.ts'),
  },
  dev: {
    summary: 'run an operator under development on an embedded cluster, until it is stopped',
    load: () => import('./commands/dev.ts'),
  },
  new: {
    summary: 'start a project',
    commands: {
      operator: {
        summary: 'a project of an operator that builds, tests and runs',
        load: () => import('./commands/new-operator.ts'),
      },
    },
  },
  operator: {
    summary: "install, run and deploy the operator of this folder's project",
    commands: {
      install: {
        summary: 'put its custom resource definitions on the cluster',
        load: () => import('./commands/operator-install.ts'),
      },
      run: { summary: 'run it here, against the cluster', load: () => import('./commands/operator-run.ts') },
      image: { summary: 'build its image', load: () => import('./commands/operator-image.ts') },
      deploy: {
        summary: 'run it on the cluster: definitions, account, roles and Deployment',
        load: () => import('./commands/operator-deploy.ts'),
      },
      undeploy: {
        summary: 'take it off the cluster; definitions and custom resources stay',
        load: () => import('./commands/operator-undeploy.ts'),
      },
      uninstall: {
        summary: 'take its definitions off the cluster, if no custom resource is left',
        load: () => import('./commands/operator-uninstall.ts'),
      },
      manifests: {
        summary: 'print all that deploy would apply',
        load: () => import('./commands/operator-manifests.ts'),
      },
    },
  },
  gen: {
    summary: 'generate code and manifests',
    commands: {
      resource: { summary: 'the code of a child resource', load: () => import('./commands/gen-resource.ts') },
      crd: { summary: 'the CRDs of the kinds that a file defines', load: () => import('./commands/gen-crd.ts') },
      webhook: {
        summary: 'the Service and registrations of the webhooks that a file defines',
        load: () => import('./commands/gen-webhook.ts'),
      },
      rbac: { summary: 'what the operators of a file may do, no wider', load: () => import('./commands/gen-rbac.ts') },
    },
  },
  inject: {
    summary: 'add the sidecar to the pod templates of manifests',
    load: () => import('./commands/inject.ts'),
  },
  controller: {
    summary: 'look after apps on the cluster, until it is stopped',
    load: () => import('./commands/controller.ts'),
  },
  images: {
    summary: 'list the images that a cluster pulls, to mirror them',
    load: () => import('./commands/images.ts'),
  },
  sidecar: { summary: 'the agent beside an application' },
  'install-agent': { summary: "copy the agent into a folder, for an image of the application's own" },
}

export function main(argv: string[]): Promise<number> {
  return runProgram({ commands, version: () => manifest().version }, argv)
}
