/**
 * What the tests of kubectl apply.
 */

/** A program that says so, and ends when it is asked to. */
const idle = 'trap "exit 0" TERM; echo hello from $HOSTNAME; while :; do sleep 0.05; done'

export const deployment = (name: string, image = 'web:1', replicas = 1): string => `
apiVersion: apps/v1
kind: Deployment
metadata: {name: ${name}, labels: {app: ${name}}}
spec:
  replicas: ${replicas}
  selector: {matchLabels: {app: ${name}}}
  template:
    metadata: {labels: {app: ${name}}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: main, image: "${image}", command: [/bin/sh, -c, '${idle}'], ports: [{containerPort: 8080}]}
`

export const pod = (name: string, more = ''): string => `
apiVersion: v1
kind: Pod
metadata: {name: ${name}, labels: {app: ${name}}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: main, image: box, command: [/bin/sh, -c, '${idle}']${more}}
`

export const service = (name: string): string => `
apiVersion: v1
kind: Service
metadata: {name: ${name}}
spec: {selector: {app: ${name}}, ports: [{port: 80, targetPort: 8080}]}
`

export const configMap = (name: string, data: Readonly<Record<string, string>>): string => `
apiVersion: v1
kind: ConfigMap
metadata: {name: ${name}}
data: ${JSON.stringify(data)}
`

/** @param group one for each who applies it */
export const boats = (group: string): string => `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.${group}}
spec:
  group: ${group}
  names: {plural: boats, singular: boat, kind: Boat, shortNames: [bt]}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.oars, statusReplicasPath: .status.oars}}
    additionalPrinterColumns:
    - {name: Oars, type: integer, jsonPath: .spec.oars}
    - {name: Captain, type: string, jsonPath: .spec.crew.captain, priority: 1}
    schema:
      openAPIV3Schema:
        type: object
        description: A boat on the sea.
        properties:
          spec:
            type: object
            description: What it should be.
            required: [oars]
            properties:
              oars: {type: integer, minimum: 0, description: How many oars it has.}
              crew: {type: object, properties: {captain: {type: string}, sailors: {type: array, items: {type: string}}}}
          status: {type: object, properties: {oars: {type: integer}}}
`

export const boat = (group: string, name: string, captain = 'Ada'): string => `
apiVersion: ${group}/v1
kind: Boat
metadata: {name: ${name}}
spec: {oars: 2, crew: {captain: ${captain}}}
`
